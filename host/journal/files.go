package journal

import (
	"errors"
	"os"
	"sync"
)

// openFiles keeps the files that are read again and again (tasks, episodes) open: they only grow.
type openFiles struct {
	mu   sync.Mutex
	open map[string]*os.File
}

// get gives the file, for ReadAt alone.
func (o *openFiles) get(root *os.Root, name string) (*os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.open[name]; f != nil {
		return f, nil
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	if o.open == nil {
		o.open = map[string]*os.File{}
	}
	o.open[name] = f
	return f, nil
}

func (o *openFiles) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, f := range o.open {
		errs = append(errs, f.Close())
	}
	o.open = nil
	return errors.Join(errs...)
}
