package gardenctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// Config is the content of config.yaml in the configuration directory.
type Config struct {
	// Gardens are the gardens that can be targeted, by name.
	Gardens []GardenConfig `json:"gardens,omitempty"`
}

// GardenConfig is a garden and its kubeconfig.
type GardenConfig struct {
	// Name is the user's name for it.
	Name string `json:"name"`
	// Kubeconfig is the absolute path of its kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Context is the one in the file. The current one if empty.
	Context string `json:"context,omitempty"`
	// Seeds are seeds of the garden that the user has access to, for logs.
	Seeds []SeedConfig `json:"seeds,omitempty"`
}

// SeedConfig is a seed and its kubeconfig.
type SeedConfig struct {
	// Name is the name of the Seed.
	Name string `json:"name"`
	// Kubeconfig is the absolute path of its kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
}

// Target is the default of the flags and arguments that select objects.
type Target struct {
	// Garden is a garden of the configuration. Empty for that of the current kubeconfig.
	Garden string `json:"garden,omitempty"`
	// Server is the address of the garden of the kubeconfig that was current when the target was set.
	Server string `json:"server,omitempty"`
	// Project is the project, and Namespace is its namespace.
	Project   string `json:"project,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Seed is the seed, in place of a project.
	Seed string `json:"seed,omitempty"`
	// Shoot is a shoot of the project.
	Shoot string `json:"shoot,omitempty"`
}

// sessionName matches valid names of sessions, which become names of files.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

func (c *cli) configFile() string { return filepath.Join(c.ConfigDir, "config.yaml") }

func (c *cli) config() (*Config, error) {
	config := &Config{}
	return config, readYAML(c.configFile(), config)
}

func (c *cli) saveConfig(config *Config) error { return writeYAML(c.configFile(), config) }

// garden returns a garden of the configuration.
func (c *Config) garden(name string) *GardenConfig {
	i := slices.IndexFunc(c.Gardens, func(g GardenConfig) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Gardens[i]
}

func (c *cli) targetFile() (string, error) {
	switch {
	case c.Session == "":
		return filepath.Join(c.ConfigDir, "target.yaml"), nil
	case !sessionName.MatchString(c.Session):
		return "", errors.New("GCTL_SESSION_ID must be up to 128 letters, digits, - and _, such as $$")
	}
	return filepath.Join(c.ConfigDir, "sessions", c.Session+".yaml"), nil
}

// savedTarget is the current target, that of the session if it has a name. A new session starts with the target outside of sessions.
func (c *cli) savedTarget() (Target, error) {
	file, err := c.targetFile()
	if err != nil {
		return Target{}, err
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		file = filepath.Join(c.ConfigDir, "target.yaml")
	}
	target := Target{}
	err = readYAML(file, &target)
	return target, err
}

func (c *cli) saveTarget(target Target) error {
	file, err := c.targetFile()
	if err != nil {
		return err
	}
	return writeYAML(file, target)
}

// readYAML reads a file, if it exists.
func readYAML(file string, into any) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("%s is not a file of this program (%w); fix or remove it", file, err)
	}
	return nil
}

func writeYAML(file string, content any) error {
	data, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	return writePrivate(file, data)
}

// writePrivate replaces a file atomically. Only the user can read it.
func writePrivate(file string, data []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	_, err = temporary.Write(data)
	if err := errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}
