// Command conformance runs the conformance tests of Kubernetes against a shoot of a local landscape, except for those in excluded.yaml.
//
//	go run ./test/conformance -landscape local -shoot garden-local/local -focus 'Services should|DNS'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/internal/distribution"
	"gardener.cloud/gardener/landscape"
)

const (
	// limit is how long all tests may take together.
	limit = 3 * time.Hour
	// cleaning is how long interrupted tests may take to delete their objects.
	cleaning = 2 * time.Minute
	// junitFile is the name of e2e.test's report.
	junitFile = "junit_01.xml"
)

type run struct {
	builds    *distribution.Distribution
	landscape *landscape.Landscape
	shoot     client.ObjectKey
	focus     string
	procs     int
	report    string
	excluded  []exclusion
}

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	err := conformance(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func conformance(ctx context.Context) error {
	if err := landscape.BypassProxy(os.Getenv, os.Setenv); err != nil {
		return err
	}
	var r run
	var dir, name, shoot string
	flag.StringVar(&dir, "dir", ".landscape", "directory of landscapes")
	flag.StringVar(&name, "landscape", landscape.DefaultName, "name of the landscape")
	flag.StringVar(&shoot, "shoot", landscape.SampleShoot.String(), "the shoot to test, as NAMESPACE/NAME")
	flag.StringVar(&r.focus, "focus", "", "a regular expression: run only tests whose names match it")
	flag.IntVar(&r.procs, "procs", 2, "how many tests to run at the same time")
	flag.StringVar(&r.report, "report", ".artifacts/conformance", "directory for the report and the log")
	flag.Parse()

	namespace, shootName, ok := strings.Cut(shoot, "/")
	if !ok {
		return fmt.Errorf("-shoot: %q is not NAMESPACE/NAME", shoot)
	}
	r.shoot = client.ObjectKey{Namespace: namespace, Name: shootName}
	if err := r.open(dir, name); err != nil {
		return err
	}
	if err := r.pushImages(ctx); err != nil {
		return err
	}
	testErr := r.test(ctx)
	result, err := readJUnit(filepath.Join(r.report, junitFile), r.excluded)
	if err != nil {
		return errors.Join(testErr, err)
	}
	result.print(os.Stdout)
	return errors.Join(testErr, result.check())
}

func (r *run) open(dir, name string) (err error) {
	if r.excluded, err = readExclusions(); err != nil {
		return err
	}
	root, err := distribution.FindRoot(".")
	if err != nil {
		return err
	}
	cache, err := distribution.DefaultCache()
	if err != nil {
		return err
	}
	if r.builds, err = distribution.Open(root, cache); err != nil {
		return err
	}
	// The tests run in a working directory of their own.
	if r.report, err = filepath.Abs(r.report); err != nil {
		return err
	}
	r.landscape, err = landscape.Open(dir, name)
	return err
}

// pushImages pushes the images that tests run to the landscape's registry.
func (r *run) pushImages(ctx context.Context) error {
	for _, product := range []string{"test-images", "etcd"} {
		artifact, err := r.builds.Artifact(product)
		if err != nil {
			return err
		}
		images, err := artifact.Images()
		if err != nil {
			return err
		}
		for _, image := range images {
			loaded, err := image.Load()
			if err != nil {
				return err
			}
			if _, err := r.landscape.Push(ctx, image.Reference, loaded); err != nil {
				return err
			}
		}
	}
	return nil
}

// test runs the tests, and returns an error if some failed.
func (r *run) test(ctx context.Context) error {
	kubeconfig, err := r.kubeconfig(ctx)
	if err != nil {
		return err
	}
	defer os.Remove(kubeconfig) //nolint:errcheck // only this user can read it, and it expires
	tests, err := r.builds.Artifact("e2e-test")
	if err != nil {
		return err
	}
	kubernetes, err := r.builds.Artifact("kubernetes")
	if err != nil {
		return err
	}
	binaries := map[string]string{}
	for name, of := range map[string]*distribution.Artifact{"ginkgo": tests, "e2e.test": tests, "kubectl": kubernetes} {
		if binaries[name], err = of.Binary(name); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(r.report); err != nil {
		return err
	}
	if err := os.MkdirAll(r.report, 0o755); err != nil {
		return err
	}

	args := []string{
		"-procs", strconv.Itoa(r.procs), "-timeout", limit.String(), "-no-color", "-silence-skips", "-label-filter", "Conformance",
	}
	if r.focus != "" {
		args = append(args, "-focus", r.focus)
	}
	for _, e := range r.excluded {
		args = append(args, "-skip", e.Tests)
	}
	args = append(args, binaries["e2e.test"], "--", "-kubeconfig", kubeconfig, "-kubectl-path", binaries["kubectl"], "-provider", "skeleton", "-report-dir", r.report)
	cmd := exec.CommandContext(ctx, binaries["ginkgo"], args...)
	cmd.Dir = r.report
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	// A process group of its own: a terminal would interrupt ginkgo too, which stops at once after two signals. ginkgo does not forward
	// signals to its processes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = cleaning
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run the tests: %w", err)
	}
	return nil
}

// kubeconfig requests credentials for the shoot, and returns a file with them. If a cluster has the name of the current context, e2e.test
// connects to its address without its server name, which the gateway needs to find the shoot.
func (r *run) kubeconfig(ctx context.Context) (string, error) {
	file, err := r.landscape.ShootKubeconfig(ctx, landscape.Access{Shoot: r.shoot, Expiration: limit})
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig of shoot %q: %w", r.shoot, err)
	}
	renameContext(config)
	data, err := clientcmd.Write(*config)
	if err != nil {
		return "", err
	}
	own, err := os.CreateTemp("", "conformance-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = own.Write(data)
	return own.Name(), errors.Join(err, own.Close())
}

// renameContext removes all contexts but the current one, and gives it a name that no cluster has.
func renameContext(config *clientcmdapi.Config) {
	const name = "conformance"
	config.Contexts = map[string]*clientcmdapi.Context{name: config.Contexts[config.CurrentContext]}
	config.CurrentContext = name
}
