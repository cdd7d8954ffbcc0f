package sdk

import "github.com/wevalr/wevalr/plugins/abi"

// Asset gives a file that travels inside the module: one that the manifest's `assets` matched.
func Asset(name string) ([]byte, error) {
	n := hostAssetLen([]byte(name))
	if n < 0 {
		return nil, NewError(abi.Status(n).String(), "asset "+name+": "+abi.Status(n).String())
	}
	b := make([]byte, n)
	if got := hostAssetRead([]byte(name), b); got != n {
		return nil, NewError(abi.Internal.String(), "asset "+name+": cannot be read")
	}
	return b, nil
}
