// Package config turns an eval file (TOML) and overrides from flags into one resolved Config.
//
// Precedence: flag > file > default; [Config.Origin] says which it was. Every problem is reported
// at once, sorted by line, with file:line, what was seen and what to do. Paths are relative to the
// eval file, also those of an override. Nothing is interpolated from the environment; it is only
// asked whether a variable that the file names is set. A Config holds names of variables, never
// their values, so it may be written anywhere.
//
// Concurrency: Load may be called from any number of goroutines; a Config is never written after
// Load and is safe to share. Ownership: the caller must not change a Config's maps and slices.
// Cancellation: none; Load reads one file of at most 1 MiB and stats the paths that it names.
//
// # Errors
//
// [Errors] holds all problems of a file, each an [Error] with its facts; its Failure is
// config/invalid. A file that cannot be read gives one [Error] without a line.
package config
