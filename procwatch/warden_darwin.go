package procwatch

import (
	"context"
	"errors"
	"os"
)

func startWarden(_ context.Context, level Containment, _ command, _ []*os.File) (body, int, error) {
	return nil, 0, &levelError{level, errors.ErrUnsupported}
}

func wardenMain() int { return 1 }
