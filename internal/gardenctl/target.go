package gardenctl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/subcommand"
)

func (c *cli) targetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "target [garden|project|seed|shoot NAME]",
		Short: "Set the default garden, project, seed and shoot of commands",
		Long: c.examples(`target project dev
  PROGRAM target shoot my-cluster
  PROGRAM target                             # what is targeted
  PROGRAM target unset
  export GCTL_SESSION_ID=$$                  # a target for this terminal only`) + `
  Targeting a garden unsets the project, and targeting a project unsets the shoot. A seed is targeted in place of a project.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			target, err := c.savedTarget()
			if err != nil {
				return err
			}
			return c.showTarget(target)
		},
	}
	for _, kind := range []struct {
		name     string
		aim      func(context.Context, string) (Target, error)
		complete cobra.CompletionFunc
	}{
		{"garden", c.aimGarden, c.completeGardens},
		{"project", c.aimProject, c.completion(projectNames)},
		{"seed", c.aimSeed, c.completion(seedNames)},
		{"shoot", c.aimShoot, c.completion(c.shootNames)},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: kind.name + " NAME", Short: "Target a " + kind.name, Args: cobra.ExactArgs(1), ValidArgsFunction: kind.complete,
			RunE: func(cmd *cobra.Command, args []string) error {
				ctx, cancel := within(cmd.Context(), requestTimeout)
				defer cancel()
				target, err := kind.aim(ctx, args[0])
				if err != nil {
					return err
				}
				if err := c.saveTarget(target); err != nil {
					return err
				}
				return c.showTarget(target)
			},
		})
	}
	cmd.AddCommand(&cobra.Command{
		Use: "unset", Short: "Remove the target", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.saveTarget(Target{}) },
	})
	return cmd
}

func (c *cli) showTarget(target Target) error {
	garden := target.Garden
	if garden == "" {
		garden = strings.TrimSpace(target.Server + " (of the current kubeconfig)")
	}
	w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Garden:\t%s\n", garden)
	for _, line := range []struct{ title, value string }{
		{"Project", target.Project}, {"Namespace", target.Namespace}, {"Seed", target.Seed}, {"Shoot", target.Shoot},
	} {
		if line.value != "" {
			fmt.Fprintf(w, "%s:\t%s\n", line.title, line.value)
		}
	}
	return w.Flush()
}

func (c *cli) aimGarden(_ context.Context, name string) (Target, error) {
	config, err := c.config()
	if err != nil {
		return Target{}, err
	}
	if config.garden(name) == nil {
		return Target{}, c.unknownGarden(name)
	}
	return Target{Garden: name}, nil
}

// connectToTarget is connect for a target that is saved, which cannot contain the value of --kubeconfig.
func (c *cli) connectToTarget() (*garden, Target, error) {
	if c.flags.kubeconfig != "" {
		return nil, Target{}, fmt.Errorf("--kubeconfig cannot be saved in a target; use $KUBECONFIG, or run: %s config add garden NAME FILE", c.program())
	}
	return c.connect()
}

func (c *cli) aimProject(ctx context.Context, name string) (Target, error) {
	g, target, err := c.connectToTarget()
	if err != nil {
		return Target{}, err
	}
	namespace, err := c.projectNamespace(ctx, g, name)
	return Target{Garden: target.Garden, Server: target.Server, Project: name, Namespace: namespace}, err
}

func (c *cli) aimSeed(ctx context.Context, name string) (Target, error) {
	g, target, err := c.connectToTarget()
	if err != nil {
		return Target{}, err
	}
	err = g.client.Get(ctx, client.ObjectKey{Name: name}, &corev1beta1.Seed{})
	return Target{Garden: target.Garden, Server: target.Server, Seed: name}, c.explain(err, g, fmt.Sprintf("seed %q", name), c.program()+" get seeds")
}

func (c *cli) aimShoot(ctx context.Context, name string) (Target, error) {
	g, target, err := c.connectToTarget()
	if err != nil {
		return Target{}, err
	}
	namespace, err := c.namespaceOf(ctx, g, target)
	if err != nil {
		return Target{}, err
	}
	p := &place{garden: g, namespace: namespace, name: name}
	_, err = c.read(ctx, p)
	target.Namespace, target.Shoot, target.Seed = namespace, name, ""
	return target, err
}

func (c *cli) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show and change the configured gardens and seeds", Args: cobra.ArbitraryArgs, RunE: subcommand.Choose,
		Long: c.examples(`config add garden live ~/live.yaml
  PROGRAM config add seed aws-1 ~/aws-1.yaml --garden live       # for logs of control planes
  PROGRAM config view
  PROGRAM config delete garden live`),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "view", Short: "Print the configuration", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			config, err := c.config()
			if err != nil {
				return err
			}
			data, err := yaml.Marshal(config)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "# %s\n%s", c.configFile(), data)
			return err
		},
	})
	add := &cobra.Command{Use: "add", Short: "Add or replace a garden or a seed", Args: cobra.ArbitraryArgs, RunE: subcommand.Choose}
	remove := &cobra.Command{Use: "delete", Short: "Remove a garden or a seed", Args: cobra.ArbitraryArgs, RunE: subcommand.Choose}
	add.AddCommand(
		&cobra.Command{
			Use: "garden NAME KUBECONFIG", Short: "Add a garden by a kubeconfig (and a --context in it)", Args: cobra.ExactArgs(2),
			RunE: func(_ *cobra.Command, args []string) error { return c.addGarden(args[0], args[1]) },
		},
		&cobra.Command{
			Use: "seed NAME KUBECONFIG", Short: "Add a seed of a garden by a kubeconfig", Args: cobra.ExactArgs(2),
			RunE: func(_ *cobra.Command, args []string) error { return c.addSeed(args[0], args[1]) },
		},
	)
	remove.AddCommand(
		&cobra.Command{
			Use: "garden NAME", Short: "Remove a garden and its seeds", Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeGardens,
			RunE: func(_ *cobra.Command, args []string) error {
				return c.changeConfig(func(config *Config) error {
					if config.garden(args[0]) == nil {
						return fmt.Errorf("garden %q is not in the configuration; list them with: %s config view", args[0], c.program())
					}
					config.Gardens = slices.DeleteFunc(config.Gardens, func(g GardenConfig) bool { return g.Name == args[0] })
					return nil
				})
			},
		},
		&cobra.Command{
			Use: "seed NAME", Short: "Remove a seed of a garden", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				return c.changeSeeds(func(seeds []SeedConfig) []SeedConfig {
					return slices.DeleteFunc(seeds, func(s SeedConfig) bool { return s.Name == args[0] })
				})
			},
		},
	)
	cmd.AddCommand(add, remove)
	return cmd
}

func (c *cli) changeConfig(change func(*Config) error) error {
	config, err := c.config()
	if err != nil {
		return err
	}
	if err := change(config); err != nil {
		return err
	}
	return c.saveConfig(config)
}

func (c *cli) addGarden(name, file string) error {
	file, err := usable(file, c.flags.context)
	if err != nil {
		return err
	}
	return c.changeConfig(func(config *Config) error {
		if known := config.garden(name); known != nil {
			known.Kubeconfig, known.Context = file, c.flags.context
			return nil
		}
		config.Gardens = append(config.Gardens, GardenConfig{Name: name, Kubeconfig: file, Context: c.flags.context})
		slices.SortFunc(config.Gardens, func(a, b GardenConfig) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
}

func (c *cli) addSeed(name, file string) error {
	file, err := usable(file, "")
	if err != nil {
		return err
	}
	return c.changeSeeds(func(seeds []SeedConfig) []SeedConfig {
		seeds = slices.DeleteFunc(seeds, func(s SeedConfig) bool { return s.Name == name })
		seeds = append(seeds, SeedConfig{Name: name, Kubeconfig: file})
		slices.SortFunc(seeds, func(a, b SeedConfig) int { return strings.Compare(a.Name, b.Name) })
		return seeds
	})
}

func (c *cli) changeSeeds(change func([]SeedConfig) []SeedConfig) error {
	target, err := c.savedTarget()
	if err != nil {
		return err
	}
	name := c.flags.garden
	if name == "" {
		name = target.Garden
	}
	if name == "" {
		return errors.New("set the garden of the seed: --garden NAME")
	}
	return c.changeConfig(func(config *Config) error {
		known := config.garden(name)
		if known == nil {
			return c.unknownGarden(name)
		}
		known.Seeds = change(known.Seeds)
		return nil
	})
}

// usable returns the absolute path of a kubeconfig that has a context.
func usable(file, context string) (string, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	_, err = loadKubeconfig(file, context)
	return file, err
}
