// Command distribution builds Kubernetes, containerd, the machine image and everything else that Gardener runs on.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/distribution"
)

func main() {
	// Root file systems and layers contain files as they are created here, whose modes a stricter mask would change.
	unix.Umask(0o022)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	defer stop()
	err := newCommand(os.Stdin, os.Stdout, os.Stderr).ExecuteContext(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "interrupted; finished products stay in the cache, and the same command continues")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(1)
	}
}

// cli is what all subcommands share.
type cli struct {
	in          io.Reader
	out, errOut io.Writer
	root, cache string
	arch        []string
	output      string
}

func newCommand(in io.Reader, out, errOut io.Writer) *cobra.Command {
	c := &cli{in: in, out: out, errOut: errOut}
	cmd := &cobra.Command{
		Use:   "distribution",
		Short: "Build what Gardener runs on",
		Long: `Examples:
  distribution build                      # everything a landscape needs; a second time, nothing
  distribution build kubernetes@v1.35.4   # one product, in a version that is not the standard one
  $(distribution path kubernetes kubectl) version --client

distribution builds Kubernetes, containerd, the machine image and everything else that Gardener runs on but does not
write itself, from the recipes in distribution/, into a cache: artifacts in the cache whose inputs have not changed are not built again.`,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	cmd.PersistentFlags().StringVar(&c.root, "root", "", "the checkout that holds distribution/ (default: the one around the working directory)")
	cmd.PersistentFlags().StringVar(&c.cache, "cache", "", "where artifacts are kept (default: $"+distribution.CacheEnv+", else gardener/distribution in the user's cache directory)")
	cmd.AddCommand(c.build(), c.list(), c.path(), c.images(), c.sbom(), c.push(), c.lock(), c.prune(), c.align(), c.version())
	return cmd
}

// open opens the distribution, for the architecture that is named.
func (c *cli) open() (*distribution.Distribution, error) {
	if len(c.arch) > 1 {
		return nil, fmt.Errorf("--arch: name one architecture, not %s", strings.Join(c.arch, ","))
	}
	all, err := c.openEach()
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// openEach opens the distribution for each architecture that is named, or else for that of this machine.
func (c *cli) openEach() ([]*distribution.Distribution, error) {
	root := c.root
	if root == "" {
		var err error
		if root, err = distribution.FindRoot("."); err != nil {
			return nil, err
		}
	}
	d, err := distribution.Open(root, c.cache)
	if err != nil || len(c.arch) == 0 {
		return []*distribution.Distribution{d}, err
	}
	var all []*distribution.Distribution
	for _, arch := range c.arch {
		of, err := d.For(arch)
		if err != nil {
			return nil, fmt.Errorf("--arch: %w", err)
		}
		all = append(all, of)
	}
	return all, nil
}

func (c *cli) archFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().StringSliceVar(&c.arch, "arch", nil, usage+": "+strings.Join(distribution.Architectures, ", ")+" (default: that of this machine)")
}

func (c *cli) build() *cobra.Command {
	var all, locked bool
	cmd := &cobra.Command{
		Use:   "build [PRODUCT[@VERSION]...]",
		Short: "Build products that are not in the cache",
		Long: `Examples:
  distribution build
  distribution build --all
  distribution build kubernetes@v1.35.4 etcd
  distribution build --locked
  distribution build --arch amd64,arm64 coredns haproxy

build makes the products named, and what they are built on; without names, everything a landscape needs.
Progress goes to stderr. An interrupted build leaves no incomplete artifact: run it again.

For another architecture than that of this machine, Go programs are cross-compiled, and Debian packages are unpacked. Products with programs in C of
their own, and Debian systems whose packages are configured, can only be built on a machine of the architecture: without names, they are left out.

Debian packages that differ from the lock files are listed, as Debian publishes fixes and its mirrors keep no earlier versions. With --locked
they are an error. Another archive under the same version is always one.`,
		RunE: func(cmd *cobra.Command, refs []string) error {
			if all && len(refs) > 0 {
				return errors.New("name products or say --all, not both")
			}
			each, err := c.openEach()
			if err != nil {
				return err
			}
			for _, d := range each {
				if locked {
					d.Locks = distribution.RequireLocked
				}
				if err := c.buildFor(cmd.Context(), d, all, refs); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.archFlag(cmd, "the architectures to build for")
	cmd.Flags().BoolVar(&all, "all", false, "also build products that a landscape does not need, in their standard versions")
	cmd.Flags().BoolVar(&locked, "locked", false, "refuse Debian packages that differ from the lock files")
	return cmd
}

// buildFor builds products for the architecture of d: those named, or without names those that a landscape needs, or all.
func (c *cli) buildFor(ctx context.Context, d *distribution.Distribution, all bool, refs []string) error {
	start := time.Now()
	if len(refs) == 0 {
		refs = d.Default()
		if all {
			refs = d.All()
		}
		for _, p := range d.NativeOnly() {
			fmt.Fprintf(c.errOut, "not built for %s: %s, as %s\n", d.Architecture(), p.Product, p.Reason)
		}
	}
	counter, stop := c.progress()
	_, err := d.Build(ctx, counter, refs...)
	stop()
	if err != nil {
		return err
	}
	unlocked, err := d.Unlocked(refs...)
	if err != nil {
		return err
	}
	for _, u := range unlocked {
		fmt.Fprintf(c.errOut, "not locked: %s\n", u)
	}
	took, architecture := time.Since(start).Round(10*time.Millisecond), ""
	if len(c.arch) > 0 {
		architecture = " for " + d.Architecture()
	}
	if counter.missing == 0 {
		fmt.Fprintf(c.errOut, "nothing to build%s: all %d products are in the cache (%s)\n", architecture, counter.total, took)
		return nil
	}
	fmt.Fprintf(c.errOut, "built %d of %d products%s in %s\n", counter.missing, counter.total, architecture, took)
	return nil
}

// progress writes the progress of a build to stderr until stop returns.
func (c *cli) progress() (p *counting, stop func()) {
	p = &counting{Lines: distribution.NewLines(c.errOut)}
	stopping, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		p.Run(stopping)
	}()
	return p, func() {
		close(stopping)
		<-stopped
	}
}

func (c *cli) lock() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock [PRODUCT...]",
		Short: "Write the Debian packages of products, with versions and hashes, into lock files",
		Long: `Examples:
  distribution lock
  distribution lock machine-root
  distribution lock --arch amd64,arm64

lock builds products with Debian packages that are not in the cache, and writes which packages they consist of into debian-ARCHITECTURE.lock
beside the recipe. For newer packages, first set debian.refreshed in the recipe to today.`,
		RunE: func(cmd *cobra.Command, refs []string) error {
			each, err := c.openEach()
			if err != nil {
				return err
			}
			for _, d := range each {
				products := refs
				if len(products) == 0 {
					products = d.All()
				}
				progress, stop := c.progress()
				files, err := d.Lock(cmd.Context(), progress, products...)
				stop()
				for _, file := range files {
					fmt.Fprintln(c.out, file)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.archFlag(cmd, "the architectures of the packages")
	return cmd
}

// counting keeps the numbers that Begin reported.
type counting struct {
	*distribution.Lines
	total, missing int
}

func (c *counting) Begin(total, missing int) {
	c.total, c.missing = total, missing
	c.Lines.Begin(total, missing)
}

func (c *cli) list() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List products, their versions, and which are built",
		Long: `Examples:
  distribution list
  distribution list -o wide
  distribution list -o json
  distribution list --arch arm64`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := c.open()
			if err != nil {
				return err
			}
			list, err := d.List()
			if err != nil {
				return err
			}
			wide := c.output == "wide"
			header := []string{"PRODUCT", "VERSION", "KEY", "CACHED", "SIZE"}
			if wide {
				header = append(header, "BUILT IN", "NEEDED", "DESCRIPTION", "DIRECTORY")
			}
			return c.print(list, header, func(row func(...string)) {
				for _, s := range list {
					cached, size, took, needed := "no", "-", "-", "landscape"
					if s.Cached {
						cached, size, took = "yes", distribution.SizeText(s.Size), fmt.Sprintf("%.0fs", s.BuildSeconds)
					}
					if s.Optional || !s.Standard {
						needed = "on demand"
					}
					cells := []string{s.Product, s.Version, s.Key[:16], cached, size}
					if wide {
						cells = append(cells, took, needed, s.Description, s.Dir)
					}
					row(cells...)
				}
			})
		},
	}
	c.archFlag(cmd, "the architecture of the artifacts")
	c.outputFlag(cmd, "json|yaml|wide")
	return cmd
}

func (c *cli) path() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "path PRODUCT[@VERSION] [FILE]",
		Short: "Print the path of an artifact, or of one of its binaries or files",
		Long: `Examples:
  distribution path kubernetes
  distribution path kubernetes kubectl
  distribution path machine images`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := c.open()
			if err != nil {
				return err
			}
			a, err := d.Artifact(args[0])
			if err != nil {
				return err
			}
			path := a.Dir
			if len(args) == 2 {
				path = filepath.Join(a.Dir, args[1])
				if _, err := os.Lstat(path); err != nil {
					if path, err = a.Binary(args[1]); err != nil {
						return err
					}
				}
			}
			_, err = fmt.Fprintln(c.out, path)
			return err
		},
	}
	c.archFlag(cmd, "the architecture of the artifact")
	return cmd
}

func (c *cli) images() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images [PRODUCT[@VERSION]...]",
		Short: "List the images of artifacts: reference and digest",
		Long: `Examples:
  distribution images
  distribution images kubernetes@v1.35.4 -o json`,
		RunE: func(_ *cobra.Command, refs []string) error {
			d, err := c.open()
			if err != nil {
				return err
			}
			named := len(refs) > 0
			if !named {
				refs = d.All()
			}
			images := []distribution.Image{}
			for _, ref := range refs {
				a, err := d.Artifact(ref)
				var notBuilt *distribution.NotBuiltError
				if !named && errors.As(err, &notBuilt) {
					continue
				}
				if err != nil {
					return err
				}
				of, err := a.Images()
				if err != nil {
					return err
				}
				images = append(images, of...)
			}
			return c.print(images, []string{"REFERENCE", "DIGEST"}, func(row func(...string)) {
				for _, i := range images {
					row(i.Reference, i.Digest)
				}
			})
		},
	}
	c.archFlag(cmd, "the architecture of the images")
	c.outputFlag(cmd, "json|yaml")
	return cmd
}

func (c *cli) sbom() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sbom IMAGE",
		Short: "Print the software bill of materials of an image, as CycloneDX JSON",
		Long: `Examples:
  distribution sbom registry.k8s.io/kube-apiserver:v1.36.3
  distribution sbom docker.io/library/haproxy:2.6 | jq -r '.components[].purl'

sbom lists the Debian packages and the Go modules that an image of an artifact consists of.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := c.open()
			if err != nil {
				return err
			}
			image, err := d.Image(args[0])
			if err != nil {
				return err
			}
			data, err := os.ReadFile(image.SBOM())
			if err != nil {
				return err
			}
			_, err = c.out.Write(data)
			return err
		},
	}
	c.archFlag(cmd, "the architecture of the image")
	return cmd
}

func (c *cli) push() *cobra.Command {
	var output string
	var p distribution.Push
	cmd := &cobra.Command{
		Use:   "push REGISTRY [PRODUCT[@VERSION]...]",
		Short: "Push images and charts to a registry",
		Long: `Examples:
  distribution push registry.example.com/gardener --output image-vector-overwrite.yaml
  distribution push localhost:5000 kubernetes etcd
  distribution push registry.example.com/gardener --arch amd64,arm64 --output image-vector-overwrite.yaml

push pushes the images of the products named, or of all that are built, the image with all processes of Gardener (bin/gardener), and the
charts. What the registry has already is not pushed again. Images keep their names below the registry, as in a mirror: registry.k8s.io/pause:3.10.2
becomes REGISTRY/registry.k8s.io/pause:3.10.2. Each refers to an SBOM (CycloneDX) and a provenance statement (in-toto, SLSA). Charts are
oci://REGISTRY/charts/operator, gardenlet and provider-local, and install the image that was pushed.

With several architectures, a reference leads to an index of the images that are built for them, each with its own SBOM and statement; nodes pull
that of their architecture. Of a product that is built for one of them only, it is that image. The executable for another architecture than
that of this machine is that of "make build-ARCHITECTURE".

The file of --output names the images and charts by their digests. It is for imageVectorOverwrite and chartsImageVectorOverwrite of the chart of
gardener-operator. Credentials are those of "docker login". A registry at a loopback address is used without TLS.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			each, err := c.openEach()
			if err != nil {
				return err
			}
			version, _, err := each[0].Release()
			if p.Version == "" {
				if err != nil {
					return fmt.Errorf("%w; name the version with --version", err)
				}
				p.Version = version
			}
			p.Registry, p.Progress = args[0], c.errOut
			for _, d := range each {
				p.Architectures = append(p.Architectures, d.Architecture())
			}
			pushed, missing, err := each[0].Push(cmd.Context(), p, args[1:]...)
			if err != nil {
				return err
			}
			c.reportMissing(missing)
			if output == "" {
				return nil
			}
			var file bytes.Buffer
			if err := pushed.Write(&file); err != nil {
				return err
			}
			return os.WriteFile(output, file.Bytes(), 0o644)
		},
	}
	c.archFlag(cmd, "the architectures to push for")
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file that gets the references of images and charts with their digests")
	cmd.Flags().StringVar(&p.Version, "version", "", "the version of charts, and the tag of the image of Gardener (default: that of the checkout)")
	cmd.Flags().StringVar(&p.Executable, "executable", "", "the executable with all processes of Gardener (default: bin/gardener of the checkout, for another architecture bin/ARCHITECTURE/gardener)")
	cmd.Flags().BoolVar(&p.Insecure, "insecure", false, "use the registry without TLS")
	return cmd
}

// reportMissing says which products were not pushed.
func (c *cli) reportMissing(missing []distribution.Missing) {
	notBuilt := map[string][]string{}
	for _, m := range missing {
		if m.Reason == "" {
			notBuilt[m.Architecture] = append(notBuilt[m.Architecture], m.Product)
			continue
		}
		fmt.Fprintf(c.errOut, "not pushed for %s: %s, as it cannot be built here: %s\n", m.Architecture, m.Product, m.Reason)
	}
	for _, architecture := range slices.Sorted(maps.Keys(notBuilt)) {
		flag := ""
		if len(c.arch) > 0 {
			flag = " --arch " + architecture
		}
		fmt.Fprintf(c.errOut, "not built, so not pushed: %s; run: bin/distribution build%s %s\n",
			strings.Join(notBuilt[architecture], ", "), flag, strings.Join(notBuilt[architecture], " "))
	}
}

func (c *cli) prune() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove artifacts of former recipes, and leftovers of interrupted builds",
		Long: `Examples:
  distribution prune
  distribution prune --yes`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := c.open()
			if err != nil {
				return err
			}
			garbage, err := d.Garbage()
			if err != nil {
				return err
			}
			if len(garbage) == 0 {
				fmt.Fprintln(c.errOut, "nothing to remove")
				return nil
			}
			var total int64
			for _, g := range garbage {
				total += g.Size
				fmt.Fprintf(c.errOut, "%8s  %s\n", distribution.SizeText(g.Size), g.Path)
			}
			if !yes {
				if f, ok := c.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
					return errors.New("cannot ask for confirmation without a terminal; to remove these, run: distribution prune --yes")
				}
				fmt.Fprintf(c.errOut, "Remove these %d directories (%s)? [y/N] ", len(garbage), distribution.SizeText(total))
				answer, err := bufio.NewReader(c.in).ReadString('\n')
				if err != nil && !errors.Is(err, io.EOF) {
					return err
				}
				if !strings.EqualFold(strings.TrimSpace(answer), "y") {
					return errors.New("nothing removed")
				}
			}
			if err := d.Remove(garbage); err != nil {
				return err
			}
			fmt.Fprintf(c.errOut, "removed %d directories, %s\n", len(garbage), distribution.SizeText(total))
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (c *cli) align() *cobra.Command {
	var like string
	cmd := &cobra.Command{
		Use:   "align PRODUCT...",
		Short: "Let a product use the module versions of Kubernetes, so that it builds faster",
		Long: `Examples:
  distribution align metrics-server

align makes the go.mod of a product require the versions of Kubernetes for all modules that Kubernetes uses too, and tidies
it. Packages that both import are then compiled once. Run it after the version of either has changed.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, refs []string) error {
			d, err := c.open()
			if err != nil {
				return err
			}
			for _, ref := range refs {
				if err := d.Align(cmd.Context(), ref, like, c.errOut); err != nil {
					return fmt.Errorf("align %s: %w", ref, err)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&like, "like", "kubernetes", "the product whose versions are taken")
	return cmd
}

func (c *cli) version() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Change the versions in which products can be built",
		Long: `Examples:
  distribution version add kubernetes v1.35.5

The standard version is that of the product's go.mod.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "add PRODUCT VERSION",
		Short: "Let a product be built in another version, too",
		Long: `Examples:
  distribution version add kubernetes v1.35.5

add writes VERSION.mod and VERSION.sum beside the recipe of the product, which is built in this version on demand. Modules that are released
together with the product, such as k8s.io/api, get the same version.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := c.open()
			if err != nil {
				return err
			}
			product, version := args[0], args[1]
			older, err := d.AddVersion(cmd.Context(), product, version, c.errOut)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "wrote distribution/%[1]s/%[2]s.mod and .sum; build it, commit both files, and offer it in CloudProfiles:\n"+
				"  bin/distribution build %[1]s@%[2]s\n  git add distribution/%[1]s\n", product, version)
			for _, other := range older {
				fmt.Fprintf(c.out, "when no cluster runs %[2]s any more:\n  git rm distribution/%[1]s/%[2]s.mod distribution/%[1]s/%[2]s.sum\n", product, other)
			}
			return nil
		},
	})
	return cmd
}

func (c *cli) outputFlag(cmd *cobra.Command, formats string) {
	cmd.Flags().StringVarP(&c.output, "output", "o", "", "output format: "+formats+" (default: a table)")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		for format := range strings.SplitSeq(formats, "|") {
			if c.output == "" || c.output == format {
				return nil
			}
		}
		return fmt.Errorf("unknown output format %q; there are: %s", c.output, strings.ReplaceAll(formats, "|", ", "))
	}
}

// print writes value as JSON or YAML, or the rows as a table.
func (c *cli) print(value any, header []string, rows func(row func(...string))) error {
	switch c.output {
	case "json":
		data, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.out, string(data))
		return err
	case "yaml":
		data, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = c.out.Write(data)
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	rows(func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) })
	return w.Flush()
}
