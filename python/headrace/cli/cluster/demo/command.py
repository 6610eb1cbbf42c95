"""Runs the demo and shows it."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headrace import MediaDriver
from headrace.cli.cluster.demo.commands import Answer, Commands, LostCommandError
from headrace.cli.cluster.demo.members import MemberProcess, Place, member_list
from headrace.cli.lifecycle import FAILED
from headrace.cli.output import OutputConsole
from headrace.clock import SYSTEM_CLOCK
from headrace.cluster import ClusterClient, ClusterError
from headrace.cluster.node.running_member import MemberStatus
from headrace.tools.units import format_count, format_duration_ns

__all__ = ["Demo", "demo_command"]

_MEMBERS = 3
_RATE = 1000
_COMMANDS = 2000
_TIMEOUT_S = 60.0
_ANSWERS_WITHIN_S = 1.0
_LOOK_S = 0.05
T = TypeVar("T")


@click.command("demo")
def demo_command() -> None:
    """Run three members on this machine, kill the one that leads, and check that no answered command is lost.

    The members are processes with a driver, an archive and a service each. A client sends numbered commands to them all
    the time. At the end the command reads the log of each member: exit status 1 says that a command that was answered
    is missing there, or is there twice. It takes some ten seconds, and deletes all its files.
    """
    # That a leader is lost is what this shows.
    logging.disable(logging.WARNING)
    console = OutputConsole()
    try:
        with Place.made() as place, MediaDriver(directory=place.drivers / "client") as driver:
            Demo(console, place, driver, _COMMANDS).run()
    except LostCommandError as lost:
        console.print(Text(f"error: {lost}", style="bold red"))
        raise click.exceptions.Exit(FAILED) from None


class Demo:
    """The steps of the demo.

    Args:
        console: Where it says what happens.
        place: Where the members keep their files.
        driver: The driver of the client.
        count: How many commands are answered between two steps.
    """

    def __init__(self, console: Console, place: Place, driver: MediaDriver, count: int) -> None:
        self._console = console
        self._place = place
        self._driver = driver
        self._count = count
        self._list = member_list(_MEMBERS)
        self._members = [MemberProcess(member_id, self._list, place) for member_id in range(_MEMBERS)]
        self._begin_ns = SYSTEM_CLOCK.monotonic_ns()

    def run(self) -> None:
        """All of it.

        Raises:
            LostCommandError: A command that was answered is not in a log, or is there twice.
            HeadraceError: A member has failed, or something takes too long.
        """
        where = self._list.replace(",", ", ")
        self._console.print(
            f"three members of a cluster, each a process of its own on this machine: {where}", soft_wrap=True
        )
        with contextlib.ExitStack() as held:
            for member in self._members:
                held.callback(member.kill)
                member.start()
            leader = self._await(self._leader, "a leader")
            self._say(f"member {leader.member_id} leads", style="bold green")
            cluster = ClusterClient.connect(driver=self._driver, members=self._list)
            commands = held.enter_context(Commands(cluster, _RATE))
            self._answered(commands)
            self._say(f"{_count(len(commands.answers))}, all answered: {_latency(commands)}")
            killed = self._kill(commands)
            self._answered(commands)
            self._say(f"{_count(len(commands.answers))} answered by now")
            self._start_again(killed, commands)
            self._answered(commands)
            self._finish(commands)
            self._check(commands)

    def _kill(self, commands: Commands) -> MemberProcess:
        """Kill the member that leads; goes on once the client has an answer from the next one."""
        leader = self._await(self._leader, "a leader", commands)
        pid, term = leader.pid, max(commands.first_of_terms)
        killed_ns = SYSTEM_CLOCK.monotonic_ns()
        leader.kill()
        self._say(f"kill -9 {pid}: member {leader.member_id}, its driver and its archive", style="bold red")

        def first_answer() -> Answer | None:
            terms = [one for one in list(commands.first_of_terms) if one > term]
            return commands.first_of_terms[min(terms)] if terms else None

        answer = self._await(first_answer, "an answer from the next leader", commands)
        following = self._await(self._leader, "the next leader", commands)
        took = format_duration_ns(answer.at_ns - killed_ns)
        text = f"member {following.member_id} leads; the client's next answer came {took} after the kill"
        self._say(text, style="bold green")
        return leader

    def _start_again(self, member: MemberProcess, commands: Commands) -> None:
        """Start the member that was killed; goes on once it has the whole log."""
        begin_ns = SYSTEM_CLOCK.monotonic_ns()
        member.start()
        self._say(f"member {member.member_id} starts again")

        def position() -> int | None:
            status, others = member.status(), [one.status() for one in self._members if one is not member]
            if status is None or status.election != "closed" or status.commit_position is None:
                return None
            agreed = min(one.commit_position or 0 for one in others if one is not None)
            return status.commit_position if status.commit_position >= agreed else None

        caught_up = self._await(position, "the member that was killed to catch up", commands)
        took = format_duration_ns(SYSTEM_CLOCK.monotonic_ns() - begin_ns)
        text = f"member {member.member_id} follows, and has caught up with the log, {format_count(caught_up)} bytes"
        self._say(f"{text}, {took} after its start", style="bold green")

    def _finish(self, commands: Commands) -> None:
        """Send no more, and end all members once each has the same log."""
        commands.pause()
        deadline = SYSTEM_CLOCK.deadline(_ANSWERS_WITHIN_S)
        # What was on its way at the kill has no answer, ever.
        self._await(lambda: not commands.unanswered_count or deadline.is_over, "the last answers", commands)
        self._await(self._is_agreed, "all members to have the same log", commands)
        self._say("all members have the same log, and end")
        for member in self._members:
            member.stop()

    def _is_agreed(self) -> bool:
        positions = {None if status is None else status.commit_position for status in self._statuses()}
        return len(positions) == 1 and None not in positions

    def _check(self, commands: Commands) -> None:
        """Look for each command in the log of each member."""
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("member", "commands in its log", "answered and missing", "there twice"):
            table.add_column(name, justify="right")
        logs = [member.commands() for member in self._members]
        lost = []
        for member, log in zip(self._members, logs, strict=True):
            missing = sorted(commands.answers.keys() - set(log))
            twice = [number for number, count in Counter(log).items() if count > 1]
            table.add_row(
                str(member.member_id), *(format_count(len(found)) for found in (log, missing, twice))
            )
            lost += [
                f"member {member.member_id} lacks command {number}, which was answered" for number in missing
            ]
            lost += [f"member {member.member_id} has command {number} twice" for number in twice]
        self._console.print(table)
        if lost:
            raise LostCommandError("; ".join(lost[:3]))
        if any(log != logs[0] for log in logs):
            raise LostCommandError("the members have the commands in different orders")
        if unanswered := commands.unanswered_count:
            there = len(logs[0]) - len(commands.answers)
            text = f"{_count(unanswered)} on the way to the killed leader got no answer"
            self._console.print(f"{text}: {there} of them are in the logs", soft_wrap=True)
        text = f"each of the {format_count(len(commands.answers))} answered commands is in every log, once"
        self._console.print(Text(text, style="bold green"))

    def _answered(self, commands: Commands) -> None:
        wanted = len(commands.answers) + self._count
        with self._console.status("sending commands"):
            self._await(lambda: len(commands.answers) >= wanted, "answers", commands)

    def _leader(self) -> MemberProcess | None:
        for member, status in zip(self._members, self._statuses(), strict=True):
            if status is not None and status.role == "leader" and status.election == "closed":
                return member
        return None

    def _seen(self, status: MemberStatus | None) -> str:
        if status is None or not status.role:
            return "no member"
        return f"member {status.member_id}: {status.role}, {status.election}, term {status.term}"

    def _statuses(self) -> Sequence[MemberStatus | None]:
        return [member.status() for member in self._members]

    def _await(self, look: Callable[[], T | None], what: str, commands: Commands | None = None) -> T:
        """Wait until there is something.

        Raises:
            ClusterError: It takes too long, or a member has ended meanwhile.
        """
        deadline = SYSTEM_CLOCK.deadline(_TIMEOUT_S)
        while not (found := look()):
            for member in self._members:
                member.check()
            if commands is not None and commands.failure is not None:
                raise commands.failure
            if deadline.is_over:
                seen = ", ".join(self._seen(status) for status in self._statuses())
                raise ClusterError(f"waited {_TIMEOUT_S:g} s for {what}: {seen}")
            SYSTEM_CLOCK.sleep(_LOOK_S)
        return found

    def _say(self, text: str, style: str = "") -> None:
        elapsed_s = (SYSTEM_CLOCK.monotonic_ns() - self._begin_ns) / 1e9
        line = Text(f"{elapsed_s:5.1f} s  ", style="dim") + Text(text, style=style)
        self._console.print(line, soft_wrap=True)


def _count(count: int) -> str:
    return f"{format_count(count)} command{'' if count == 1 else 's'}"


def _latency(commands: Commands) -> str:
    took = sorted(answer.took_ns for answer in list(commands.answers.values()))
    p50, p99 = (format_duration_ns(took[int(len(took) * share)]) for share in (0.5, 0.99))
    return f"p50 {p50}, p99 {p99}"
