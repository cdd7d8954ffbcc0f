package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

// Fuel is the guest's budget of instructions, counted by the meter. It is what ends a runaway, at the
// same instruction each time; time limits stand behind it for what instructions do not measure.
const (
	// defaultFuel is a scoring call's: about two seconds of a slow core.
	defaultFuel = 2_000_000_000
	// fuelCap is how much a manifest may wish without a word of the operator's.
	fuelCap = 10 * defaultFuel
	// callFuel is how many times a scoring call's budget the other calls get: by default 30 G.
	callFuel = 15
	// quantum is how much is granted at a time: some 0.1 ms, after which the call's end is looked for
	// again, and which a collection of garbage may have to wait for.
	quantum = 100_000
	// maxDepth bounds nested calls in the meter's units.
	maxDepth = 16_384
	// hostCall and hostByte are what a host function burns: work that the meter does not see.
	hostCall = 200
	hostByte = 8 // bytes a unit
	// fileCall is what a look at a file burns besides, or an entry of a folder: the host asks its system.
	fileCall = 1_000
)

// meterVersion says how fuel is counted. Equal versions burn equal fuel.
func meterVersion() string {
	return fmt.Sprintf("%s depth %d host %d/%d/%d", meter.Version, maxDepth, hostCall, hostByte, fileCall)
}

var (
	errFuel  = errors.New("out of fuel")
	errDepth = errors.New("calls nest too deep")
)

// tank is a call's fuel.
type tank struct {
	gauge   api.MutableGlobal // what is left of what was granted
	budget  int64
	granted int64
}

// used is exact for calls that returned. Else it runs ahead by less than one pass through a function, or
// behind by less than a quantum.
func (t *tank) used() uint64 {
	if t.gauge == nil {
		return 0
	}
	return uint64(max(t.granted-int64(t.gauge.Get()), 0))
}

// refill grants the next quantum, or ends the call: over is why.
func (t *tank) refill() (int64, error) {
	n := min(quantum, t.budget-t.granted)
	if n <= 0 {
		return 0, errFuel
	}
	t.granted += n
	return n, nil
}

// burn charges the call for a host function's work before it is done. It panics where a call ends.
func (c *call) burn(ctx context.Context, n int64) {
	left := int64(c.tank.gauge.Get()) - n
	for left < 0 {
		c.look(ctx)
		more, err := c.tank.refill()
		if err != nil {
			c.tank.gauge.Set(uint64(left))
			panic(err)
		}
		left += more
	}
	c.tank.gauge.Set(uint64(left))
}

// look ends the call if it is over. ctx is the guest call's.
func (c *call) look(ctx context.Context) {
	if ctx.Err() != nil {
		panic(context.Cause(ctx))
	}
}

// walk charges for the way to a file: each folder on it is looked up.
func (c *call) walk(ctx context.Context, name string) {
	c.burn(ctx, fileCall*int64(2+strings.Count(name, "/")))
	c.look(ctx) // links may make it far longer
}

// refillImport is what metered code calls. A panic ends the call.
func refillImport(ctx context.Context, _ api.Module, stack []uint64) {
	c := callOf(ctx)
	if api.DecodeI32(stack[0]) == meter.ReasonDepth {
		panic(errDepth)
	}
	c.look(ctx)
	n, err := c.tank.refill()
	if err != nil {
		panic(err)
	}
	stack[0] = uint64(n)
}

// instantiateMeter gives a runtime the import that metered code refills from.
func instantiateMeter(ctx context.Context, rt wazero.Runtime) error {
	_, err := rt.NewHostModuleBuilder("wevalr:meter").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refillImport), []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI64}).
		Export("refill").Instantiate(ctx)
	return err
}
