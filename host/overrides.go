package host

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/plugin"
)

// Flag is a flag of the command line that stands for a key of the eval file.
type Flag struct {
	Name  string // -c, -m, -n, -r, --seed, --task
	Value any
}

// Overrides are what the command line says against the eval file, in the order of their precedence.
type Overrides struct {
	Flags []Flag
	Set   []string // arguments of --set
}

func (o Overrides) list() ([]config.Override, error) {
	var out []config.Override
	for _, f := range o.Flags {
		out = append(out, config.Flag(f.Name, f.Value))
	}
	for _, s := range o.Set {
		ov, err := config.ParseSet(s)
		if err != nil {
			return nil, err
		}
		out = append(out, ov)
	}
	return out, nil
}

// loadConfig reads an eval file with its overrides.
func loadConfig(path string, o Overrides) (*config.Config, error) {
	set, err := o.list()
	if err != nil {
		return nil, err
	}
	return config.Loader{LookupEnv: os.LookupEnv, ManifestName: manifestName}.Load(path, set)
}

// manifestName reads a plugin's own name: its alias where the eval file gives none.
func manifestName(source string) (string, error) {
	if strings.HasSuffix(source, ".wasm") {
		b, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		module, err := plugin.Inspect(source, b)
		if err != nil {
			return "", err
		}
		return module.Manifest.Name, nil
	}
	file := filepath.Join(source, "plugin.toml")
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	m, err := plugin.ParseManifest(file, b)
	if err != nil {
		return "", err
	}
	return m.Name, nil
}
