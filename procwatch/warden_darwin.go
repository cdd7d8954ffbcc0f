package procwatch

import (
	"context"
	"errors"
	"os"
)

var errNoWarden = errors.New("the level warden cannot be had on this system")

func startWarden(context.Context, command, []*os.File) (body, int, error) {
	return nil, 0, errNoWarden
}

func wardenMain() int { return 1 }
