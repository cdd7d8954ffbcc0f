package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// defaultCacheDir is wevalr's folder in the user's cache folder.
func defaultCacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache: %w", err)
	}
	return filepath.Join(base, "wevalr"), nil
}

// privateDir makes a folder that only this user can write to. The compiled code in it runs in this
// process: whoever can write there owns it, so a folder of others is refused.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	if !st.IsDir() {
		return fmt.Errorf("cache: %s: not a folder", dir)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("cache: %s: belongs to another user\nname another folder or remove it", dir)
	}
	if perm := st.Mode().Perm(); perm&0o077 != 0 {
		return fmt.Errorf("cache: %s: others have access (mode %04o)\nrun: chmod 700 %s", dir, perm, dir)
	}
	return nil
}
