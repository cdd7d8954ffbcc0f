package config

type origins struct{ byKey map[string]string }

func isOffline(name string) bool { return len(name) > 8 && name[:8] == "offline/" }
