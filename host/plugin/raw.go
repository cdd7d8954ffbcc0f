package plugin

import (
	"context"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
)

// CallRaw makes one call with a request as bytes, from the state that scoring calls start from, and gives
// the response as the guest wrote it: for tests of guests, with bytes that no host would send. memory is
// the linear memory's size after the call. The env is not there.
func (p *Plugin) CallRaw(ctx context.Context, op abi.Op, request []byte) (response []byte, memory uint64, took time.Duration, err error) {
	err = p.withScorer(ctx, func(in *instance) error {
		c := p.newCall(op, 0)
		in.calls++
		took, err = in.guarded(ctx, c, func(gctx context.Context) error {
			response, err = in.exchange(gctx, c, request)
			return err
		})
		memory = uint64(in.size())
		return err
	})
	if err != nil {
		return nil, memory, took, err
	}
	return response, memory, took, nil
}
