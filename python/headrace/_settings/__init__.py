"""How settings are declared, checked and read, for driver, client, archive and cluster."""
