package rollout

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
)

// Seed derives the 31-bit seed of a rollout from the run's base: the first four bytes of
// sha256(base ‖ 0 ‖ key ‖ 0 ‖ index), base and index in decimal. The rollouts of a task differ and each can
// be repeated.
func Seed(base int64, key string, index int) int64 {
	return derive(strconv.FormatInt(base, 10), key, strconv.Itoa(index))
}

// callSeed is the seed of the n-th env call of a plugin-driven rollout; the first is the rollout's own.
func callSeed(base int64, key string, index, call int) int64 {
	if call == 0 {
		return Seed(base, key, index)
	}
	return derive(strconv.FormatInt(base, 10), key, strconv.Itoa(index), strconv.Itoa(call))
}

func derive(parts ...string) int64 {
	h := sha256.New()
	for i, p := range parts {
		if i > 0 {
			h.Write([]byte{0})
		}
		h.Write([]byte(p))
	}
	return int64(binary.BigEndian.Uint32(h.Sum(nil)) & 0x7fffffff)
}
