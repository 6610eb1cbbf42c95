"""Programs that a row starts as separate processes: ours and the peers', written alike."""
