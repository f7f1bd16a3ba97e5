// Command scheduler measures how fast gardener-scheduler binds shoots that all wait at its start, and which resources it uses: the process
// is the real one, with its configuration file, the API servers are those of test/env.
//
//	go run ./test/bench/scheduler -shoots 2000 -seeds 20
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/scheduler"
	"gardener.cloud/gardener/test/env"
)

const (
	namespace = "garden-local"
	// creators is how many requests create objects at the same time.
	creators = 16
	// scrapeInterval is how often the metrics of the scheduler are read, which costs little compared to what is measured.
	scrapeInterval = 250 * time.Millisecond
	// limit is how long a run may take.
	limit = 15 * time.Minute
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == scheduler.Name {
		if err := runScheduler(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		return
	}
	var b bench
	flag.IntVar(&b.shoots, "shoots", 2000, "how many shoots wait for a seed")
	flag.IntVar(&b.seeds, "seeds", 20, "how many seeds there are")
	flag.IntVar(&b.workers, "workers", 20, "how many shoots the scheduler reconciles at the same time")
	flag.StringVar(&b.strategy, "strategy", "SameRegion", "strategy of the scheduler")
	flag.Parse()
	klog.SetLogger(logr.Discard()) // of the API server in this process
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// runScheduler runs gardener-scheduler, in the process that is measured.
func runScheduler(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cmd := scheduler.Component().Command()
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

type bench struct {
	shoots, seeds, workers int
	strategy               string
}

func (b bench) run(ctx context.Context) (err error) {
	e, err := env.New(ctx, io.Discard, env.Lenient())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	if err := b.prepare(ctx, e); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	metrics, err := b.measure(ctx, e, dir)
	if err != nil {
		return err
	}
	fewest, most, err := b.placement(ctx, e)
	if err != nil {
		return err
	}
	fmt.Printf("%d shoots on %d seeds, %s, %d workers\n", b.shoots, b.seeds, b.strategy, b.workers)
	fmt.Printf("  %.0f shoots bound per second\n", metrics.rate)
	perShoot := func(cpu time.Duration) float64 { return float64(cpu.Microseconds()) / 1000 / float64(b.shoots) }
	fmt.Printf("  %.2f ms of CPU per shoot, start included, and %.2f ms in gardener-apiserver\n", perShoot(metrics.cpu), perShoot(metrics.serverCPU))
	fmt.Printf("  %s or less for 99%% of the decisions\n", metrics.p99)
	fmt.Printf("  %d MiB resident, %d MiB at most\n", metrics.resident>>20, metrics.mostResident>>20)
	fmt.Printf("  %d to %d shoots per seed\n", fewest, most)
	return nil
}

func (b bench) prepare(ctx context.Context, e *env.Env) error {
	fmt.Fprintf(os.Stderr, "creating %d seeds and %d shoots\n", b.seeds, b.shoots)
	err := errors.Join(
		e.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}),
		e.Client.Create(ctx, &corev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Spec: corev1beta1.ProjectSpec{Namespace: new(namespace)},
		}),
		e.Client.Create(ctx, profile()),
		e.Client.Create(ctx, &corev1beta1.ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: "local"},
			Spec: corev1beta1.ControllerRegistrationSpec{Resources: []corev1beta1.ControllerResource{
				{Kind: "ControlPlane", Type: "local"}, {Kind: "DNSRecord", Type: "local"},
			}},
		}),
	)
	if err != nil {
		return err
	}
	err = parallel(b.seeds, func(i int) error {
		s := seed(fmt.Sprintf("seed-%03d", i))
		status := s.Status
		if err := e.Client.Create(ctx, s); err != nil {
			return err
		}
		s.Status = status
		return e.Client.Status().Update(ctx, s)
	})
	if err != nil {
		return err
	}
	return parallel(b.shoots, func(i int) error { return e.Client.Create(ctx, shoot(fmt.Sprintf("shoot-%05d", i))) })
}

// figures are the results of a run.
type figures struct {
	rate                   float64
	cpu, serverCPU, p99    time.Duration
	resident, mostResident int64
}

// measure runs a scheduler until it has bound all shoots.
func (b bench) measure(ctx context.Context, e *env.Env, dir string) (figures, error) {
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return figures{}, err
	}
	port := listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // that of a TCP listener
	// All of 127.0.0.0/8 is loopback, so one free port is enough for two servers.
	content := fmt.Sprintf(`apiVersion: scheduler.config.gardener.cloud/v1alpha1
kind: SchedulerConfiguration
clientConnection: {kubeconfig: %s, qps: -1}
server:
  healthProbes: {bindAddress: 127.0.0.2, port: %d}
  metrics: {bindAddress: 127.0.0.1, port: %d}
logLevel: error
schedulers:
  shoot: {concurrentSyncs: %d, candidateDeterminationStrategy: %s}
`, kubeconfig, port, port, b.workers, b.strategy)
	if err := errors.Join(listener.Close(), e.WriteKubeconfig(kubeconfig), os.WriteFile(config, []byte(content), 0o600)); err != nil {
		return figures{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return figures{}, err
	}
	cmd := exec.CommandContext(ctx, self, scheduler.Name, "--config", config)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return figures{}, err
	}
	before := ownCPU()
	out, err := b.follow(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", port), cmd.Process.Pid)
	out.serverCPU = ownCPU() - before
	err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	out.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return out, err
}

// ownCPU returns the CPU time of this process, most of which is used by the gardener-apiserver in it.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// follow reads the metrics of a scheduler until it has bound all shoots.
func (b bench) follow(ctx context.Context, url string, pid int) (figures, error) {
	var begin time.Time
	var bound int // at the time of begin
	ticker := time.NewTicker(scrapeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return figures{}, ctx.Err()
		case <-ticker.C:
		}
		values, err := scrape(ctx, url)
		if err != nil {
			continue // it has not started yet
		}
		now := int(values[`gardener_scheduler_shoot_attempts_total{result="bound"}`])
		if begin.IsZero() && now > 0 {
			begin, bound = time.Now(), now
		}
		if now < b.shoots {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return figures{
			rate:         float64(now-bound) / time.Since(begin).Seconds(),
			p99:          quantile(values, "gardener_scheduler_shoot_decision_duration_seconds", 0.99),
			resident:     memory(string(status), "VmRSS:"),
			mostResident: memory(string(status), "VmHWM:"),
		}, err
	}
}

// placement checks the seeds of the shoots, and returns the lowest and the highest number on a seed.
func (b bench) placement(ctx context.Context, e *env.Env) (fewest, most int, err error) {
	shoots := &corev1beta1.ShootList{}
	if err := e.Client.List(ctx, shoots); err != nil {
		return 0, 0, err
	}
	counts := map[string]int{}
	for _, s := range shoots.Items {
		if s.Spec.SeedName == nil {
			return 0, 0, fmt.Errorf("shoot %q has no seed", s.Name)
		}
		if s.Generation != 2 {
			return 0, 0, fmt.Errorf("shoot %q was changed %d times, want once", s.Name, s.Generation-1)
		}
		counts[*s.Spec.SeedName]++
	}
	fewest = b.shoots
	for _, count := range counts {
		fewest, most = min(fewest, count), max(most, count)
	}
	if len(counts) != b.seeds || most-fewest > 1 {
		return 0, 0, fmt.Errorf("uneven: %d seeds have between %d and %d shoots", len(counts), fewest, most)
	}
	return fewest, most, nil
}

// scrape returns the metrics by their name and labels.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	values := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), " "); found && !strings.HasPrefix(name, "#") {
			if number, err := strconv.ParseFloat(value, 64); err == nil {
				values[name] = number
			}
		}
	}
	return values, lines.Err()
}

// quantile returns the upper bound of the bucket of a histogram that contains a quantile.
func quantile(values map[string]float64, histogram string, q float64) time.Duration {
	total, best := values[histogram+"_count"], time.Duration(0)
	for name, count := range values {
		rest, found := strings.CutPrefix(name, histogram+`_bucket{le="`)
		if !found || count < q*total {
			continue
		}
		bound, err := strconv.ParseFloat(strings.TrimSuffix(rest, `"}`), 64)
		if err == nil && bound < 1e9 {
			if d := time.Duration(bound * float64(time.Second)); best == 0 || d < best {
				best = d
			}
		}
	}
	return best
}

// memory returns a value of /proc/PID/status, in bytes.
func memory(status, key string) int64 {
	for line := range strings.SplitSeq(status, "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == key {
			value, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes numbers there
			return value << 10
		}
	}
	return 0
}

// parallel calls a function with the numbers below n.
func parallel(n int, do func(int) error) error {
	var group sync.WaitGroup
	errs := make([]error, creators)
	for c := range creators {
		group.Go(func() {
			for i := c; i < n && errs[c] == nil; i += creators {
				errs[c] = do(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func profile() client.Object {
	return &corev1beta1.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "local"},
		Spec: corev1beta1.CloudProfileSpec{
			Type: "local", Regions: []corev1beta1.Region{{Name: "local"}},
			Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{{Version: "1.34.3"}}},
			MachineImages: []corev1beta1.MachineImage{{
				Name: "local",
				Versions: []corev1beta1.MachineImageVersion{{
					ExpirableVersion: corev1beta1.ExpirableVersion{Version: "1.0.0"}, CRI: []corev1beta1.CRI{{Name: corev1beta1.CRINameContainerD}},
				}},
			}},
			MachineTypes: []corev1beta1.MachineType{{
				Name: "local", CPU: resource.MustParse("1"), GPU: resource.MustParse("0"), Memory: resource.MustParse("8Gi"),
			}},
		},
	}
}

func seed(name string) *corev1beta1.Seed {
	ref := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "dns"}
	return &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1beta1.SeedSpec{
			Provider: corev1beta1.SeedProvider{Type: "local", Region: "local", Zones: []string{"0"}},
			Ingress:  &corev1beta1.Ingress{Domain: name + ".seed.local", Controller: corev1beta1.IngressController{Kind: "nginx"}},
			DNS: corev1beta1.SeedDNS{
				Provider: &corev1beta1.SeedDNSProvider{Type: "local", CredentialsRef: &ref},
				Internal: &corev1beta1.SeedDNSProviderConfig{Type: "local", Domain: "internal.local", CredentialsRef: ref},
			},
			Networks: corev1beta1.SeedNetworks{
				Nodes: new("172.18.0.0/24"), Pods: "10.1.0.0/16", Services: "10.2.0.0/16",
				ShootDefaults: &corev1beta1.ShootNetworks{Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16")},
			},
		},
		Status: corev1beta1.SeedStatus{
			Allocatable: corev1.ResourceList{"shoots": resource.MustParse("1000")},
			LastOperation: &corev1beta1.LastOperation{
				Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.Now(),
			},
			Conditions: []corev1beta1.Condition{{
				Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue, Reason: "Ready", Message: "It is ready.",
				LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
			}},
		},
	}
}

func shoot(name string) *corev1beta1.Shoot {
	return &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			Region:       "local", Provider: corev1beta1.Provider{Type: "local"},
			Kubernetes: corev1beta1.Kubernetes{Version: "1.34.3"},
		},
	}
}
