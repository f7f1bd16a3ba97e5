package gardenctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/subcommand"
	"gardener.cloud/gardener/internal/wave"
)

// upgrade is a request to upgrade gardenlets.
type upgrade struct {
	version, ref, selector string
	images, components     string
	canaries, accepted     []string
	size, tolerated        int
	soak, timeout          time.Duration
	dryRun, yes            bool
}

func (c *cli) upgradeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "upgrade", Short: "Upgrade the gardenlets of many seeds", Args: cobra.ArbitraryArgs, RunE: subcommand.Choose}
	u := upgrade{}
	gardenlets := &cobra.Command{
		Use: "gardenlets --to=VERSION", Short: "Upgrade gardenlets wave by wave, and stop when a seed gets worse", Args: cobra.NoArgs,
		Long: c.examples(`upgrade gardenlets --to=v1.151.0 --dry-run                          # what would be done
  PROGRAM upgrade gardenlets --to=v1.151.0 --canary=eu-1 --wave-size=10     # asks for confirmation
  PROGRAM upgrade gardenlets --to=v1.151.0 --image-vector-overwrite=overwrite.yaml     # the file that gardener-operator has, too
  PROGRAM upgrade gardenlets --to=v1.151.0 --selector=stage=live --wave-size=10 --soak=1h --timeout=2h --yes
  PROGRAM upgrade gardenlets --ref=registry.example.com/charts/gardener/gardenlet:v1.151.0 --yes`) + `
It sets the version in Gardenlets, and in ManagedSeeds that name an image; other managed seeds follow the gardenlet that deploys theirs. Gardenlets that were
deployed with an image vector overwrite keep it, with the images of the former version, unless --image-vector-overwrite has another one. A wave has passed when
its gardenlets are deployed and report the version, conditions of its Seeds that were True are True, and no more shoots on them are unhealthy than
before, all for the time of --soak. The new gardenlet reconciles its shoots within its syncPeriod, one hour by default, or in their maintenance windows: what it does to
them is only seen if --soak is longer, at least for a canary. If it does not pass, the command stops, and changes nothing else. What is left follows from the objects in the garden: the
same command continues where it was interrupted or has stopped, and then tries gardenlets once more that were rolled back. This is for operators: it needs
permission to list and watch seeds, and shoots of all projects, to get, list, watch and patch gardenlets and managedseeds, and to read the ConfigMap
gardener-info.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.upgradeGardenlets(cmd.Context(), u) },
	}
	flags := gardenlets.Flags()
	flags.StringVar(&u.version, "to", "", "the version that gardenlets report afterwards, and without --ref the tag of their charts")
	flags.StringVar(&u.ref, "ref", "", "reference of the chart (default: that of each Gardenlet, with the version as its tag)")
	flags.StringVar(&u.images, "image-vector-overwrite", "",
		"`file` with the image vector overwrite of the version, as distribution push writes it; an empty one means none (default: what each Gardenlet has)")
	flags.StringVar(&u.components, "component-image-vector-overwrite", "", "`file` with the same for components that deploy images themselves")
	flags.StringVarP(&u.selector, "selector", "l", "", "labels that seeds must have, as key=value,... (default: all seeds)")
	flags.StringSliceVar(&u.canaries, "canary", nil, "a seed of the first wave, which has no others; can be repeated")
	flags.IntVar(&u.size, "wave-size", 1, "how many gardenlets are upgraded at a time")
	flags.DurationVar(&u.soak, "soak", 5*time.Minute, "how long the seeds of a wave have to stay as healthy as before")
	flags.IntVar(&u.tolerated, "tolerate-unhealthy", 0, "how many percent of the shoots of a seed may become unhealthy; with more, its wave does not pass")
	flags.DurationVar(&u.timeout, "timeout", time.Hour, "how long a wave may take, with --soak")
	flags.StringSliceVar(&u.accepted, "accept", nil, "a seed that is worse since its upgrade, and is to be compared with how it is now; can be repeated")
	flags.BoolVar(&u.dryRun, "dry-run", false, "print the waves, and change nothing")
	flags.BoolVar(&u.yes, "yes", false, "do not ask")
	for _, name := range []string{"canary", "accept"} {
		_ = gardenlets.RegisterFlagCompletionFunc(name, c.completion(seedNames)) // it fails for unknown flags only
	}
	cmd.AddCommand(gardenlets)
	return cmd
}

// selection returns which gardenlets are upgraded.
func (u upgrade) selection() (s wave.Selection, err error) {
	s = wave.Selection{Canaries: u.canaries, Accepted: u.accepted, Size: u.size}
	overwrites, err := u.overwrites()
	if err != nil {
		return s, err
	}
	if s.Target, err = wave.ParseTarget(u.version, u.ref, overwrites); err != nil {
		return s, fmt.Errorf("%w; set --to=VERSION", err)
	}
	if s.Seeds, err = labels.Parse(u.selector); err != nil {
		return s, fmt.Errorf("--selector: %w", err)
	}
	switch {
	case u.size < 1:
		return s, fmt.Errorf("--wave-size must be at least 1, not %d", u.size)
	case u.tolerated < 0 || u.tolerated > 100:
		return s, fmt.Errorf("--tolerate-unhealthy must be from 0 to 100, not %d", u.tolerated)
	case u.soak < 0:
		return s, fmt.Errorf("--soak must not be negative, and is %s", u.soak)
	case u.timeout <= u.soak:
		return s, fmt.Errorf("--timeout must be longer than --soak, and is %s", u.timeout)
	}
	return s, nil
}

// overwrites reads the files with image vector overwrites. What a gardenlet could not read at its start is refused.
func (u upgrade) overwrites() (wave.Overwrites, error) {
	images, err := readOverwrite("--image-vector-overwrite", u.images, func(data []byte) error {
		_, err := imagevector.Read(data)
		return err
	})
	if err != nil {
		return wave.Overwrites{}, err
	}
	components, err := readOverwrite("--component-image-vector-overwrite", u.components, func(data []byte) error {
		_, err := imagevector.ReadComponentOverwrites(data)
		return err
	})
	return wave.Overwrites{Images: images, Components: components}, err
}

// readOverwrite returns the text of a file, or nil without one.
func readOverwrite(flag, path string, check func([]byte) error) (*string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if len(data) > 0 {
		if err := check(data); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", flag, path, err)
		}
	}
	return new(string(data)), nil
}

func (c *cli) upgradeGardenlets(ctx context.Context, u upgrade) error {
	selection, err := u.selection()
	if err != nil {
		return err
	}
	g, _, err := c.connect()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	run := wave.Upgrade{
		Client: strict{g.client, stop}, Selection: selection, Soak: u.soak, Tolerated: u.tolerated, Timeout: u.timeout, Clock: c.Clock, Report: c.reportSeed,
	}
	plan, err := run.Plan(ctx)
	if err != nil {
		return c.explainUpgrade(err, g)
	}
	if err := c.printPlan(plan, selection.Target); err != nil {
		return err
	}
	if u.dryRun || len(plan.Waves) == 0 {
		return leftOut(plan.Held)
	}
	if !u.yes {
		if !c.Interactive {
			return errors.New("cannot ask for confirmation without a terminal to upgrade gardenlets; add --yes")
		}
		question := fmt.Sprintf("Gardenlets are upgraded to %s in %d waves. Type the version to continue: ", selection.Target, len(plan.Waves))
		if err := c.confirm(ctx, question, selection.Target.String()); err != nil {
			return fmt.Errorf("%w; nothing is changed", err)
		}
	}
	held, err := run.Run(ctx)
	stopped := (*wave.Stopped)(nil)
	switch {
	case errors.As(err, &stopped):
		return fmt.Errorf("%w; no further seed was changed; repeat the command when the reason is removed, with --accept=SEED to go on with a seed as it is now", err)
	case isRefused(context.Cause(ctx)):
		return c.explainUpgrade(context.Cause(ctx), g)
	case err != nil:
		return c.explainUpgrade(err, g)
	}
	if err := leftOut(held); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "all selected seeds have gardenlets with version %s\n", selection.Target)
	return err
}

// explainUpgrade adds the next step to errors of the API. Others have theirs.
func (c *cli) explainUpgrade(err error, g *garden) error {
	status, network := apierrors.APIStatus(nil), (*url.Error)(nil)
	if errors.As(err, &status) || errors.As(err, &network) {
		return c.explain(err, g, "gardenlets", c.program()+" get seeds")
	}
	return err
}

// reportSeed prints what happens to the gardenlet of a seed.
func (c *cli) reportSeed(seed, text string) {
	fmt.Fprintf(c.ErrOut, "%s  %s: %s\n", c.Clock.Now().Format(time.TimeOnly), seed, line(text))
}

// printPlan prints the waves, and the seeds that are left out.
func (c *cli) printPlan(plan *wave.Plan, target wave.Target) error {
	if plan.Warning != "" {
		fmt.Fprintln(c.ErrOut, "warning: "+line(plan.Warning))
	}
	if len(plan.Kept) > 0 {
		fmt.Fprintf(c.ErrOut, "warning: the Gardenlets of these seeds keep their image vector overwrite, which may have the images of another version: %s; "+
			"set it with --image-vector-overwrite and --component-image-vector-overwrite\n", strings.Join(plan.Kept, ", "))
	}
	if len(plan.Waves) > 0 {
		table := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "WAVE\tSEED\tVERSION\tTO\tFOLLOWED BY")
		for i, w := range plan.Waves {
			number := fmt.Sprint(i + 1)
			if w.Begun {
				number += " (begun)"
			}
			for _, gardenlet := range w.Gardenlets {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", number, gardenlet.Seed, cmp.Or(gardenlet.Version, none), target, cmp.Or(strings.Join(gardenlet.Followers, ","), none))
			}
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if len(plan.Done) > 0 {
		fmt.Fprintf(c.ErrOut, "%d seeds have version %s already\n", len(plan.Done), target)
	}
	for _, held := range plan.Held {
		fmt.Fprintf(c.ErrOut, "seed %s is left out: %s\n", held.Seed, held.Reason)
	}
	return nil
}

// leftOut returns an error if seeds do not get the version.
func leftOut(held []wave.Held) error {
	if len(held) == 0 {
		return nil
	}
	names := make([]string, 0, len(held))
	for _, h := range held {
		names = append(names, h.Seed)
	}
	return fmt.Errorf("seeds that are left out: %s; remove the reasons, or exclude them with --selector", strings.Join(names, ", "))
}
