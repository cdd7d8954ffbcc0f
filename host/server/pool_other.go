//go:build !linux

package server

// seesWorkers: nothing here shows how another process's child ended.
const seesWorkers = false

func children(int) []child { return nil }

func argvOf(int) []string { return nil }

func mayBePool(int) bool { return false }
