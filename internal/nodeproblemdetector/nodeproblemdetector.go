package nodeproblemdetector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	component "gardener.cloud/gardener/internal/component/nodeproblemdetector"
	"gardener.cloud/gardener/internal/process"
)

const (
	// Name is the name of the command.
	Name = component.Name

	// reopenAfter is after which time a source that could not be read is opened again.
	reopenAfter = time.Minute
	// retryAfter is after which time conditions that could not be written are written again. It is jittered, as all nodes are affected at once.
	retryAfter, jitter = 30 * time.Second, 0.5
	// headersTimeout is how long a client may take for the headers of a request.
	headersTimeout = 10 * time.Second
)

// options are the flags.
type options struct {
	node, kubeconfig     string
	kernelLog, systemBus string
	port                 int
	logLevel             string
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: Name, Short: "Report problems of a node as its conditions, events and metrics", Example: "  " + Name + " --node-name=machine-0",
		Version: process.Version(), Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := process.NewLogger(cmd.ErrOrStderr(), o.logLevel, "json")
			klog.SetLogger(log)
			return o.run(cmd.Context(), log)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.node, "node-name", "", "name of the Node")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; by default the cluster of the pod")
	flags.StringVar(&o.kernelLog, "kernel-log", "/dev/kmsg", "device with the log of the kernel")
	flags.StringVar(&o.systemBus, "system-bus", "/run/dbus/system_bus_socket", "socket of the bus of systemd")
	flags.IntVar(&o.port, "port", component.Port, "port of /healthz and /metrics")
	flags.StringVar(&o.logLevel, "log-level", "info", "info, debug or error")
}

func (o *options) run(ctx context.Context, log logr.Logger) error {
	if o.node == "" {
		return errors.New("--node-name is missing; set it to the name of the Node")
	}
	config, err := process.ClientConfig(componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: o.kubeconfig, QPS: 5, Burst: 10})
	if err != nil {
		return err
	}
	client, err := corev1client.NewForConfig(rest.AddUserAgent(config, Name))
	if err != nil {
		return err
	}
	m := newMetrics()
	log.Info("Starting "+Name, "version", process.Version(), "node", o.node)
	failed, err := o.serve(ctx, m)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.Events("")})
	r := &reporter{
		detector: newDetector(m), node: &node{client: client.Nodes(), name: o.node}, clock: clock.RealClock{}, log: log,
		recorder: broadcaster.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: Name, Host: o.node}),
	}
	return r.run(ctx, o.open(ctx, log), failed)
}

// serve serves probes and metrics until the context ends.
func (o *options) serve(ctx context.Context, m *metrics) (failed <-chan error, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(o.port))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headersTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return ended, nil
}

// open reads all sources until the context ends.
func (o *options) open(ctx context.Context, log logr.Logger) <-chan observation {
	observations := make(chan observation)
	u := &units{connect: systemBus(o.systemBus), starts: map[string]uint64{}}
	go keep(ctx, log, systemd, observations, u.read)
	go func() {
		since, err := u.machineStart(ctx)
		if err != nil {
			log.Error(err, "Reading the whole kernel log, as the start of the machine is not known")
		}
		keep(ctx, log, kernel, observations, kernelLog{path: o.kernelLog, since: since}.read)
	}()
	return observations
}

// keep reads a source until the context ends.
func keep(ctx context.Context, log logr.Logger, s source, to chan<- observation, read func(context.Context, func(observation)) error) {
	send := func(o observation) {
		select {
		case to <- o:
		case <-ctx.Done():
		}
	}
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		err := read(ctx, send)
		log.V(1).Info("Reading source again", "source", s, "after", reopenAfter.String(), "error", err)
		if err != nil {
			send(unavailable(s, err))
		}
	}, reopenAfter, jitter, true)
}

// reporter reports what the detector finds.
type reporter struct {
	detector *detector
	node     *node
	recorder record.EventRecorder
	clock    clock.Clock
	log      logr.Logger
	// retry is when conditions may be written after a failure. Observations are not held up by an API that does not respond.
	retry time.Time
}

// run reports observations until the context ends.
func (r *reporter) run(ctx context.Context, observations <-chan observation, failed <-chan error) error {
	again := r.clock.NewTimer(heartbeat)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case o := <-observations:
			r.events(o(r.detector, r.clock.Now()))
		case <-again.C():
		}
		if wait := r.retry.Sub(r.clock.Now()); wait > 0 {
			again.Reset(wait)
		} else if r.detector.known() { // the first time, all conditions are written at once
			again.Reset(r.report(ctx))
		}
	}
}

// events records events of the Node. Its UID is the name, as in those of kubelets; kubectl describe shows no others.
func (r *reporter) events(list []event) {
	reference := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: r.node.name, UID: types.UID(r.node.name)}
	for _, e := range list {
		r.log.Info("Reporting problem", "reason", e.reason, "message", e.message)
		r.recorder.Event(reference, e.kind, e.reason, e.message)
	}
}

// report writes conditions, and returns when to do so again.
func (r *reporter) report(ctx context.Context) time.Duration {
	now := r.clock.Now()
	conditions, ends := r.detector.conditions(now)
	if err := r.node.report(ctx, conditions, now); err != nil {
		r.log.Error(err, "Writing conditions again", "after", retryAfter.String())
		after := wait.Jitter(retryAfter, jitter)
		r.retry = r.clock.Now().Add(after)
		return after
	}
	next := r.node.at.Add(heartbeat).Sub(now)
	if ends > 0 {
		next = min(next, ends)
	}
	return next
}
