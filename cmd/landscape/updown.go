package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/distribution"
	"gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/landscape/progress"
)

func (c *cli) upCommand() *cobra.Command {
	var options landscape.UpOptions
	var onlyClusters, withoutShoot, asJSON, check bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring a landscape up, or change it",
		Long: `Examples:
  landscape up                                 # a cluster with one machine, gardener-operator and the garden in it, and a shoot
  landscape up --without-shoot                 # the garden only
  landscape up --only-clusters                 # without the garden
  landscape up --machines 3                    # the runtime cluster with three machines, more or fewer than before
  landscape up --machines 3 --zones 3          # these machines in three zones, see "High availability" in docs/landscape.md
  landscape up --seeds 2                       # a second seed, which is a cluster of its own
  landscape up --hosts 5                       # five servers for provider-hosts, see docs/provider-hosts.md
  landscape up --cluster other --machines 1    # a second cluster, beside the runtime cluster
  landscape up --check                         # only say whether this computer can do it; builds nothing
  landscape up --json | jq                     # for programs: one object for each thing that happens

"up" creates what is missing and changes what differs. It can be interrupted and run again at any time.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			start := time.Now()
			var step *progress.StepError
			defer func() {
				// A failed step has been reported already.
				if asJSON && err != nil && !errors.As(err, &step) {
					progress.NewJSON(c.out).Failed(err)
				}
			}()
			if cmd.Flags().Changed("machines") && options.Machines < 1 {
				return fmt.Errorf("--machines must be at least 1, not %d", options.Machines)
			}
			if cmd.Flags().Changed("zones") && options.Zones < 1 {
				return fmt.Errorf("--zones must be at least 1, not %d", options.Zones)
			}
			if cmd.Flags().Changed("seeds") && options.Seeds < 1 {
				return fmt.Errorf("--seeds must be at least 1, not %d", options.Seeds)
			}
			if onlyClusters && options.Seeds > 0 {
				return errors.New("--seeds needs a garden: leave out --only-clusters")
			}
			if cmd.Flags().Changed("hosts") && options.Hosts < 1 {
				return fmt.Errorf("--hosts must be at least 1, not %d", options.Hosts)
			}
			if options.TimeoutFactor < 1 {
				return fmt.Errorf("--timeout-factor must be at least 1, not %d", options.TimeoutFactor)
			}
			if onlyClusters && options.Hosts > 0 {
				return errors.New("--hosts needs a garden: leave out --only-clusters")
			}
			options.Shoot = !onlyClusters && !withoutShoot
			l, err := c.open()
			if err != nil {
				return err
			}
			if check {
				return l.Check(options)
			}
			builds, err := c.builds()
			if err != nil {
				return err
			}
			if options.Images, _, err = imagevector.OverwriteFilesFromEnv(os.Getenv).Load(); err != nil {
				return err
			}
			if !onlyClusters {
				if options.Gardener, err = besideUs("gardener"); err != nil {
					return err
				}
			}
			printer := c.printer()
			if asJSON {
				printer = progress.NewJSON(c.out)
			}
			if err := l.Up(cmd.Context(), builds, printer, options); err != nil {
				return err
			}
			cluster := options.Cluster
			if cluster == "" {
				cluster = landscape.RuntimeCluster
			}
			done := upResult{Landscape: l.Name, Seconds: time.Since(start).Seconds(), Kubeconfig: l.KubeconfigFile(cluster)}
			if cluster == landscape.RuntimeCluster && !onlyClusters {
				done.Kubeconfig, done.RuntimeKubeconfig = l.KubeconfigFile(landscape.VirtualGarden), done.Kubeconfig
			}
			if options.Shoot {
				access := landscape.Access{Shoot: landscape.SampleShoot, Expiration: kubeconfigLife}
				if done.ShootKubeconfig, err = l.ShootKubeconfig(cmd.Context(), access); err != nil {
					return err
				}
			}
			if asJSON {
				return json.NewEncoder(c.out).Encode(done)
			}
			fmt.Fprintf(c.errOut, "\nLandscape %q is up after %.0fs and takes %.1f GiB of disk.\n%s",
				l.Name, done.Seconds, float64(l.DiskUse())/(1<<30),
				done.advice(l.Name, missingKubectl(builds), landscape.ProxyAdvice(os.Getenv), !onlyClusters && cluster == landscape.RuntimeCluster))
			return nil
		},
	}
	cmd.Flags().StringVar(&options.Cluster, "cluster", "", "cluster to bring up or change (default: runtime)")
	cmd.Flags().IntVar(&options.Machines, "machines", 0, "number of machines of the cluster (default: what it has, or 1)")
	cmd.Flags().IntVar(&options.Zones, "zones", 0, "number of zones that the machines of the cluster are spread over; machines keep their zone (default: what it has, or 1)")
	cmd.Flags().IntVar(&options.Seeds, "seeds", 0, "number of seeds of the garden: local, which is the runtime cluster, local-2 and so on (default: what it has, or 1)")
	cmd.Flags().IntVar(&options.Hosts, "hosts", 0, "number of servers that belong to no cluster, and are in the inventory of provider-hosts (default: what it has, or none)")
	cmd.Flags().StringVar(&options.Version, "kubernetes-version", "", "Kubernetes version of a new cluster, such as v1.35.4 (default: the distribution's); it must have been built")
	cmd.Flags().BoolVar(&options.RotateEncryptionKeys, "rotate-encryption-keys", false,
		"rotate the keys that Secrets of the clusters and resources of the garden are encrypted with in etcd; those of clusters are rotated anyway after 90 days")
	cmd.Flags().BoolVar(&options.KeepGardenlets, "keep-gardenlets", false,
		"leave the gardenlets that there are at their version: a garden is upgraded before them, and works with those of the minor version before")
	cmd.Flags().IntVar(&options.TimeoutFactor, "timeout-factor", 1, "multiply how long each step may take, for computers that are slow or emulated")
	cmd.Flags().BoolVar(&onlyClusters, "only-clusters", false, "bring up clusters without a garden")
	cmd.Flags().BoolVar(&withoutShoot, "without-shoot", false, "do not create the sample shoot; an existing one stays")
	cmd.Flags().BoolVar(&check, "check", false, "only check whether this computer can run the landscape, and change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write events as JSON to the standard output, one a line; the last one has the kubeconfig files")
	return cmd
}

// kubeconfigLife is the default validity of credentials for shoots. The garden may allow less.
const kubeconfigLife = 8 * time.Hour

// upResult is the result of "up".
type upResult struct {
	Landscape string  `json:"landscape"`
	Seconds   float64 `json:"seconds"`
	// Kubeconfig is the file for the garden, or for the cluster that was brought up.
	Kubeconfig string `json:"kubeconfig"`
	// RuntimeKubeconfig is the file for the runtime cluster, if Kubeconfig is for another one: the virtual cluster that serves the garden API.
	RuntimeKubeconfig string `json:"runtimeKubeconfig,omitempty"`
	// ShootKubeconfig is the file for the sample shoot, empty without one.
	ShootKubeconfig string `json:"shootKubeconfig,omitempty"`
}

// missingKubectl is the kubectl of the distribution, if there is none in PATH.
func missingKubectl(builds *distribution.Distribution) string {
	if _, err := exec.LookPath("kubectl"); err == nil {
		return ""
	}
	artifact, err := builds.Artifact("kubernetes")
	if err != nil {
		return ""
	}
	path, err := artifact.Binary("kubectl")
	if err != nil {
		return ""
	}
	return path
}

// advice lists commands to run next. kubectl is the path of the distribution's kubectl, and proxy a command that lets kubectl bypass a
// proxy. Both are empty if not needed.
func (r upResult) advice(name, kubectl, proxy string, garden bool) string {
	program := os.Args[0]
	if name != landscape.DefaultName {
		program += " --name " + name
	}
	text := "\n"
	if kubectl != "" {
		text += "  alias kubectl=" + kubectl + "    # PATH has no kubectl\n"
	}
	if proxy != "" {
		text += "  " + proxy + "    # proxies cannot reach it\n"
	}
	text += "  export KUBECONFIG=" + r.Kubeconfig + "\n"
	if !garden {
		return text + "  kubectl get nodes,pods -A\n  " + program + " status\n"
	}
	text = "\nThe garden. Its runtime cluster, which is also the seed, has " + r.RuntimeKubeconfig + ":" + text
	if r.ShootKubeconfig != "" {
		text += fmt.Sprintf("\nThe shoot %s, for %.0f hours (more with: %s kubeconfig shoot %[1]s):\n  kubectl --kubeconfig %[4]s get nodes,pods -A\n",
			landscape.SampleShoot, kubeconfigLife.Hours(), program, r.ShootKubeconfig)
	}
	return text + "\nTry next:\n  kubectl apply -f example/shoot-workerless.yaml    # a shoot without nodes\n" +
		"  kubectl get shoots -A -w                          # watch its creation\n  " + program + " status\n"
}

// besideUs is the path of another executable of Gardener in the directory of this one.
func besideUs(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w; build it with: make build", err)
	}
	return path, nil
}

func (c *cli) downCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove a landscape and all its data",
		Long: `Examples:
  landscape down          # asks first
  landscape down --yes

"down" leaves no process, mount, network or file behind, also after an "up" that did not finish.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := c.open()
			if err != nil {
				return err
			}
			if !l.Exists() {
				fmt.Fprintf(c.errOut, "There is no landscape %q.\n", l.Name)
				return nil
			}
			if !yes {
				if err := c.confirm(fmt.Sprintf("Remove landscape %q and all data in %s?", l.Name, l.Dir)); err != nil {
					return err
				}
			}
			return l.Down(cmd.Context(), c.printer())
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirm asks for confirmation, and refuses without a terminal.
func (c *cli) confirm(question string) error {
	file, ok := c.in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // descriptors are small
		return errors.New("cannot ask for confirmation without a terminal: this removes data; add --yes to do it")
	}
	fmt.Fprintf(c.errOut, "%s [y/N] ", question)
	answer, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("not removed")
	}
	return nil
}
