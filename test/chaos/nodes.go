package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/test/e2e/serverimage"
)

const (
	// stepTimeout is how long a step may take on a busy machine.
	stepTimeout = 25 * time.Minute
	// hold is how long a PodDisruptionBudget allows no disruption while machines are replaced.
	hold = 45 * time.Second
	// app is the workload, in the pool tested; the probers run on any node.
	app, tested, other = "app", "tested", "other"
	fieldOwner         = "chaos"
)

// story is a sequence of changes to a shoot with nodes.
type story struct {
	clients

	landscape *landscape.Landscape
	killer    *killer
	key       client.ObjectKey
	manifest  string
	versions  []string
	namespace string // of the control plane

	// inside is a client of the shoot, from config.
	config    *rest.Config
	inside    client.WithWatch
	strategy  corev1beta1.MachineUpdateStrategy
	clientset kubernetes.Interface
	probes    *probes
	stop      context.CancelFunc // of the probes

	rows []row
}

// step is a part of the story. It returns a note for the result.
type step struct {
	name string
	do   func(context.Context) (note string, err error)
}

// row is the result of a step.
type row struct {
	name           string
	took           time.Duration
	load           string
	workload, logs outcome
	note           string
}

// runNodes makes all changes of users to a shoot with nodes, and kills everything that may fail, while its workload is probed all the time.
func runNodes(ctx context.Context, flags *flag.FlagSet, args []string) error {
	name := flags.String("landscape", "local", "name of the landscape, which must be up")
	manifest := flags.String("f", "example/shoot.yaml", "the shoot to create, with another name and two pools")
	versions := flags.String("versions", "1.34.4,1.35.4,1.36.1,1.36.3", "of Kubernetes: the first one, and those to upgrade to")
	strategy := flags.String("strategy", "", "update strategy of the pools, for example AutoInPlaceUpdate, which needs the feature gate InPlaceNodeUpdates in the garden")
	only := flags.String("steps", "", "a regular expression; steps whose names do not match it are left out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	steps, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	l, c, err := open(*name)
	if err != nil {
		return err
	}
	s := &story{
		landscape: l, clients: c, killer: &killer{landscape: *name}, key: client.ObjectKey{Namespace: landscape.SampleShoot.Namespace, Name: "nodes"},
		manifest: *manifest, versions: strings.Split(*versions, ","), stop: func() {}, strategy: corev1beta1.MachineUpdateStrategy(*strategy),
	}
	defer func() { s.stop() }()
	if err := s.connect(ctx); client.IgnoreNotFound(err) != nil {
		return err
	}
	for _, step := range s.steps() {
		if !steps.MatchString(step.name) {
			continue
		}
		if err := s.run(ctx, step); err != nil {
			s.print()
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	s.print()
	return nil
}

func (s *story) steps() []step {
	steps := []step{
		{"create with two pools", s.create},
		{"deploy a workload", s.deploy},
		{"one machine more", s.scale(3)},
		{"one machine less", s.scale(2)},
		{"autoscale", s.autoscale},
		{"another machine type", s.changeType},
		{"another kubelet configuration", s.configureKubelet},
		{"a budget without disruptions", s.block},
	}
	if s.strategy.InPlace() {
		steps = []step{
			{"create with two pools", s.create},
			{"deploy a workload", s.deploy},
			{"another kubelet configuration", s.configureKubelet},
			{"more resources reserved", s.reserve},
		}
	}
	for _, version := range s.versions[1:] {
		steps = append(steps, step{"upgrade to " + version, s.upgrade(version)})
	}
	steps = append(steps, step{"rotate credentials", s.rotate})
	return append(append(steps, s.kills()...),
		step{"hibernate", s.hibernate},
		step{"wake up", s.wake},
		step{"delete", s.remove},
	)
}

// run runs a step, and prints its result.
func (s *story) run(ctx context.Context, step step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("not done after %s", stepTimeout))
	defer cancel()
	begin := time.Now()
	note, err := step.do(ctx)
	end := time.Now()
	r := row{name: step.name, took: end.Sub(begin), load: load(), note: note}
	if s.probes != nil {
		if err == nil && !s.probes.paused.Load() {
			err = s.probes.known(ctx, end)
		}
		r.workload, r.logs = s.probes.between(begin, end)
	}
	s.rows = append(s.rows, r)
	fmt.Fprintf(os.Stderr, "%s %s", time.Now().Format(time.TimeOnly), r)
	for _, o := range []outcome{r.workload, r.logs} {
		for failure, times := range o.failures {
			fmt.Fprintf(os.Stderr, "    %4d times %s\n", times, failure)
		}
	}
	return err
}

const line = "%-38s %8s %6s %9s %7s %8s %6s %8s  %s\n"

func (r row) String() string {
	return fmt.Sprintf(line, r.name, r.took.Round(100*time.Millisecond), r.load, fmt.Sprint(r.workload.requests), fmt.Sprint(r.workload.failed),
		r.workload.gap.Round(10*time.Millisecond), fmt.Sprint(r.logs.failed), r.logs.gap.Round(10*time.Millisecond), r.note)
}

func (s *story) print() {
	fmt.Printf(line, "step", "time", "load", "requests", "failed", "gap", "logs", "gap", "")
	for _, r := range s.rows {
		fmt.Print(r)
	}
}

// load is the load average of the last minute.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(content), " ")
	return first
}

// create creates the shoot.
func (s *story) create(ctx context.Context) (string, error) {
	shoot, err := shootFrom(s.manifest, s.key.Name)
	if err != nil {
		return "", err
	}
	shoot.Namespace, shoot.Spec.Kubernetes.Version = s.key.Namespace, s.versions[0]
	// No maintenance during the story.
	noon := time.Now().UTC().Add(12 * time.Hour)
	shoot.Spec.Maintenance = &corev1beta1.Maintenance{
		AutoUpdate: &corev1beta1.MaintenanceAutoUpdate{KubernetesVersion: false, MachineImageVersion: new(false)},
		TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: noon.Format("150405+0000"), End: noon.Add(time.Hour).Format("150405+0000")},
	}
	template := shoot.Spec.Provider.Workers[0]
	shoot.Spec.Provider.Workers = nil
	for name, count := range map[string]int32{tested: 2, other: 1} {
		worker := *template.DeepCopy()
		worker.Name, worker.Minimum, worker.Maximum = name, count, count
		if s.strategy != "" {
			worker.UpdateStrategy = &s.strategy
		}
		if s.strategy.InPlace() {
			worker.MaxSurge, worker.MaxUnavailable = new(intstr.FromInt32(0)), new(intstr.FromInt32(1))
		}
		shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, worker)
	}
	if err := client.IgnoreAlreadyExists(s.garden.Create(ctx, shoot)); err != nil {
		return "", err
	}
	if err := s.healthy(ctx); err != nil {
		return "", err
	}
	if err := s.connect(ctx); err != nil {
		return "", err
	}
	return "", errors.Join(s.pool(ctx, tested, 2, nil), s.pool(ctx, other, 1, nil))
}

// connect gets access to the shoot, and starts the probes.
func (s *story) connect(ctx context.Context) error {
	shoot := &corev1beta1.Shoot{}
	if err := s.garden.Get(ctx, s.key, shoot); err != nil {
		return err
	}
	if s.probes != nil || shoot.Status.TechnicalID == "" {
		return nil
	}
	s.namespace = shoot.Status.TechnicalID
	if err := s.access(ctx); err != nil {
		return err
	}
	s.probes = newProbes(s.clientset)
	probing, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); s.probes.run(probing) }()
	s.stop = func() { stop(); <-done }
	return nil
}

// access requests credentials for the shoot.
func (s *story) access(ctx context.Context) error {
	file, err := s.landscape.ShootKubeconfig(ctx, landscape.Access{Shoot: s.key, Expiration: 8 * time.Hour})
	if err != nil {
		return err
	}
	if s.config, err = clientcmd.BuildConfigFromFlags("", file); err != nil {
		return err
	}
	s.config.QPS = -1
	if s.inside, err = client.NewWithWatch(s.config, client.Options{}); err != nil {
		return err
	}
	s.clientset, err = kubernetes.NewForConfig(s.config)
	return err
}

// healthy waits until the shoot is reconciled and healthy.
func (s *story) healthy(ctx context.Context) error {
	return kube.AwaitShoot(ctx, s.garden, s.key, kube.ShootHealthy, nil)
}

// change changes the spec of the shoot.
func (s *story) change(ctx context.Context, change func(*corev1beta1.ShootSpec)) error {
	return changeShoot(ctx, s.garden, s.key, change)
}

// pool waits until a pool has a number of nodes that are Ready and pass the check, and no others.
func (s *story) pool(ctx context.Context, name string, count int, check func(*corev1.Node) error) error {
	return kube.Await(ctx, s.inside, &corev1.NodeList{}, func(nodes []*corev1.Node) error {
		for _, node := range nodes {
			if node.DeletionTimestamp != nil || node.Spec.Unschedulable {
				return fmt.Errorf("node %s is to be removed", node.Name)
			}
			if err := kube.NodeReady(node); err != nil {
				return err
			}
			if check != nil {
				if err := check(node); err != nil {
					return err
				}
			}
		}
		if len(nodes) != count {
			return fmt.Errorf("pool %s has %d nodes", name, len(nodes))
		}
		return nil
	}, nil, client.MatchingLabels{constants.WorkerPool: name})
}

// deploy creates a workload that can lose a pod, and its probers.
func (s *story) deploy(ctx context.Context) (string, error) {
	image, err := serverimage.Build(ctx)
	if err != nil {
		return "", err
	}
	if _, err := s.landscape.Push(ctx, serverimage.Reference, image); err != nil {
		return "", err
	}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: app}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt(8080)}},
	}}
	server := twice(app)
	pod := &server.Spec.Template.Spec
	pod.NodeSelector = map[string]string{constants.WorkerPool: tested}
	pod.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt(8080)},
	}}
	// All nodes learn that the pod ends before it does.
	pod.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
	if err := kube.Apply(ctx, s.inside, fieldOwner, service, server, budget(app)); err != nil {
		return "", err
	}
	if err := s.inside.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
		return "", err
	}
	if err := s.deployed(ctx, app); err != nil {
		return "", err
	}
	prober := twice(proberApp)
	prober.Spec.Template.Spec.Containers[0].Args = []string{"probe", "http://" + service.Spec.ClusterIP + "/hostname"}
	if err := kube.Apply(ctx, s.inside, fieldOwner, prober, budget(proberApp)); err != nil {
		return "", err
	}
	return "", s.deployed(ctx, proberApp)
}

// twice is a Deployment of the test server with two pods, on different nodes if possible.
func twice(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2)),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(10)),
			Containers: []corev1.Container{{
				Name: "server", Image: serverimage.Reference, ImagePullPolicy: corev1.PullAlways, // its tag does not change
			}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			}},
		}},
	}}
}

// budget is a PodDisruptionBudget that allows one pod to be missing.
func budget(name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: new(intstr.FromInt(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
	}}
}

func (s *story) deployed(ctx context.Context, name string) error {
	return kube.Await(ctx, s.inside, &appsv1.DeploymentList{}, func(found []*appsv1.Deployment) error {
		if len(found) == 0 {
			return fmt.Errorf("Deployment %q is gone", name)
		}
		return kube.DeploymentComplete(found[0])
	}, nil, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"metadata.name": name})
}

// worker is the tested pool.
func worker(spec *corev1beta1.ShootSpec) *corev1beta1.Worker {
	at := slices.IndexFunc(spec.Provider.Workers, func(w corev1beta1.Worker) bool { return w.Name == tested })
	return &spec.Provider.Workers[at]
}

func (s *story) scale(count int32) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if err := s.change(ctx, func(spec *corev1beta1.ShootSpec) { worker(spec).Minimum, worker(spec).Maximum = count, count }); err != nil {
			return "", err
		}
		return s.settled(ctx, func() error { return s.pool(ctx, tested, int(count), nil) })
	}
}

// settled waits for the nodes, then for the workload, then for the shoot.
func (s *story) settled(ctx context.Context, nodes func() error) (string, error) {
	begin := time.Now()
	if err := nodes(); err != nil {
		return "", err
	}
	note := fmt.Sprintf("nodes after %s", time.Since(begin).Round(time.Second))
	return note, errors.Join(s.deployed(ctx, app), s.healthy(ctx))
}

func (s *story) changeType(ctx context.Context) (string, error) {
	old, err := s.nodeNames(ctx)
	if err != nil {
		return "", err
	}
	if err := s.change(ctx, otherType); err != nil {
		return "", err
	}
	return s.settled(ctx, func() error { return s.pool(ctx, tested, 2, noneOf(old)) })
}

// otherType switches to the other machine type of the landscape.
func otherType(spec *corev1beta1.ShootSpec) {
	machine := &worker(spec).Machine
	if machine.Type == "large" {
		machine.Type = "local"
	} else {
		machine.Type = "large"
	}
}

// nodeNames are the names of the nodes of the tested pool.
func (s *story) nodeNames(ctx context.Context) ([]string, error) {
	nodes := &corev1.NodeList{}
	if err := s.inside.List(ctx, nodes, client.MatchingLabels{constants.WorkerPool: tested}); err != nil {
		return nil, err
	}
	var names []string
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	return names, nil
}

func noneOf(names []string) func(*corev1.Node) error {
	return func(node *corev1.Node) error {
		if slices.Contains(names, node.Name) {
			return fmt.Errorf("node %s still exists", node.Name)
		}
		return nil
	}
}

// configureKubelet changes a setting that needs no new machines.
func (s *story) configureKubelet(ctx context.Context) (string, error) {
	const pods = 99
	before, err := s.nodeNames(ctx)
	if err != nil {
		return "", err
	}
	if err := s.change(ctx, func(spec *corev1beta1.ShootSpec) {
		if spec.Kubernetes.Kubelet == nil {
			spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{}
		}
		spec.Kubernetes.Kubelet.MaxPods = new(int32(pods))
	}); err != nil {
		return "", err
	}
	return s.settled(ctx, func() error {
		return s.pool(ctx, tested, 2, func(node *corev1.Node) error {
			if err := onlyOf(before)(node); err != nil {
				return err
			}
			if got := node.Status.Capacity.Pods().Value(); got != pods {
				return fmt.Errorf("node %s has a capacity of %d pods", node.Name, got)
			}
			return nil
		})
	})
}

// reserve changes what is reserved for the kubelet, for which nodes that are updated in place are drained.
func (s *story) reserve(ctx context.Context) (string, error) {
	before, err := s.nodeNames(ctx)
	if err != nil {
		return "", err
	}
	reserved := resource.MustParse("333Mi")
	if err := s.change(ctx, func(spec *corev1beta1.ShootSpec) {
		if spec.Kubernetes.Kubelet == nil {
			spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{}
		}
		spec.Kubernetes.Kubelet.KubeReserved = &corev1beta1.KubeletConfigReserved{Memory: &reserved}
	}); err != nil {
		return "", err
	}
	done := onlyOf(before)
	return s.settled(ctx, func() error {
		return s.pool(ctx, tested, 2, func(node *corev1.Node) error {
			at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == machinev1alpha1.NodeInPlaceUpdate })
			if at < 0 || node.Status.Conditions[at].Reason != machinev1alpha1.UpdateSuccessful {
				return fmt.Errorf("node %s is not updated", node.Name)
			}
			return done(node)
		})
	})
}

// onlyOf checks that nodes are not new.
func onlyOf(names []string) func(*corev1.Node) error {
	return func(node *corev1.Node) error {
		if !slices.Contains(names, node.Name) {
			return fmt.Errorf("node %s is new", node.Name)
		}
		return nil
	}
}

// block replaces machines while a PodDisruptionBudget allows no disruption, and allows it after a while.
func (s *story) block(ctx context.Context) (string, error) {
	closed := budget(app)
	closed.Spec.MaxUnavailable, closed.Spec.MinAvailable = nil, new(intstr.FromInt(2))
	if err := kube.Apply(ctx, s.inside, fieldOwner, closed); err != nil {
		return "", err
	}
	old, err := s.nodeNames(ctx)
	if err != nil {
		return "", err
	}
	if err := s.change(ctx, otherType); err != nil {
		return "", err
	}
	var kept *machinev1alpha1.Machine
	if err := kube.Await(ctx, s.seed, &machinev1alpha1.MachineList{}, func(machines []*machinev1alpha1.Machine) error {
		for _, kept = range machines {
			if strings.Contains(kept.Status.LastOperation.Description, "disruption budget") {
				return nil
			}
		}
		return errors.New("no machine waits for a budget")
	}, nil, client.InNamespace(s.namespace)); err != nil {
		return "", err
	}
	begin := time.Now()
	waiting, cancel := context.WithTimeout(ctx, hold)
	defer cancel()
	err = kube.Await(waiting, s.seed, &machinev1alpha1.MachineList{}, func(machines []*machinev1alpha1.Machine) error {
		if len(machines) == 0 {
			return nil
		}
		return errors.New("it waits, as expected")
	}, nil, client.InNamespace(s.namespace), client.MatchingFields{"metadata.name": kept.Name})
	if err == nil {
		return "", fmt.Errorf("machine %s was removed after %s, against the disruption budget", kept.Name, time.Since(begin))
	}
	if ctx.Err() != nil {
		return "", err
	}
	if err := kube.Apply(ctx, s.inside, fieldOwner, budget(app)); err != nil {
		return "", err
	}
	note, err := s.settled(ctx, func() error { return s.pool(ctx, tested, 2, noneOf(old)) })
	return fmt.Sprintf("a machine waited %s, then %s", hold, note), err
}

func (s *story) upgrade(version string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		old, err := s.nodeNames(ctx)
		if err != nil {
			return "", err
		}
		if err := s.change(ctx, func(spec *corev1beta1.ShootSpec) { spec.Kubernetes.Version = version }); err != nil {
			return "", err
		}
		replaced := 0
		upgraded := func(node *corev1.Node) error {
			if got := node.Status.NodeInfo.KubeletVersion; got != "v"+version {
				return fmt.Errorf("node %s has version %s", node.Name, got)
			}
			return nil
		}
		note, err := s.settled(ctx, func() error {
			return errors.Join(s.pool(ctx, tested, 2, upgraded), s.pool(ctx, other, 1, upgraded))
		})
		if err != nil {
			return "", err
		}
		now, err := s.nodeNames(ctx)
		for _, name := range now {
			if !slices.Contains(old, name) {
				replaced++
			}
		}
		return fmt.Sprintf("%s, %d of %d new", note, replaced, len(now)), err
	}
}

// rotate rotates all credentials. All machines are replaced, and the old access ends.
func (s *story) rotate(ctx context.Context) (string, error) {
	old, err := s.nodeNames(ctx)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	if err := s.operate(ctx, constants.OperationRotateCredentialsStart, corev1beta1.RotationPrepared); err != nil {
		return "", err
	}
	note := fmt.Sprintf("prepared after %s", time.Since(begin).Round(time.Second))
	if err := s.access(ctx); err != nil {
		return "", err
	}
	s.probes.use(s.clientset)
	if err := s.operate(ctx, constants.OperationRotateCredentialsComplete, corev1beta1.RotationCompleted); err != nil {
		return "", err
	}
	check := noneOf(old)
	if s.strategy.InPlace() {
		check = onlyOf(old)
	}
	_, err = s.settled(ctx, func() error { return errors.Join(s.pool(ctx, tested, 2, check), s.pool(ctx, other, 1, nil)) })
	return note, err
}

// operate requests a step of a rotation, and waits until all credentials are in a phase of it.
func (s *story) operate(ctx context.Context, operation string, phase corev1beta1.CredentialsRotationPhase) error {
	if err := requestOperation(ctx, s.garden, s.key, operation); err != nil {
		return err
	}
	return kube.AwaitShoot(ctx, s.garden, s.key, func(shoot *corev1beta1.Shoot) error { return credentialsRotated(shoot, phase) }, nil)
}

// requestOperation requests an operation of a shoot by its annotation.
func requestOperation(ctx context.Context, garden client.Client, key client.ObjectKey, operation string) error {
	shoot := &corev1beta1.Shoot{}
	if err := garden.Get(ctx, key, shoot); err != nil {
		return err
	}
	return kube.PatchMetadata(ctx, garden, shoot, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, operation)
	})
}

// credentialsRotated returns why a shoot is not healthy with all credentials in a phase of their rotation.
func credentialsRotated(shoot *corev1beta1.Shoot, phase corev1beta1.CredentialsRotationPhase) error {
	if err := kube.ShootHealthy(shoot); err != nil {
		return err
	}
	c := shoot.Status.Credentials
	if c == nil || c.Rotation == nil || c.Rotation.CertificateAuthorities == nil || c.Rotation.ServiceAccountKey == nil || c.Rotation.ETCDEncryptionKey == nil {
		return errors.New("the rotation has not started")
	}
	for _, got := range []corev1beta1.CredentialsRotationPhase{
		c.Rotation.CertificateAuthorities.Phase, c.Rotation.ServiceAccountKey.Phase, c.Rotation.ETCDEncryptionKey.Phase,
	} {
		if got != phase {
			return fmt.Errorf("a rotation is %s", got)
		}
	}
	return nil
}

// hibernate hibernates the shoot, and checks what is left.
func (s *story) hibernate(ctx context.Context) (string, error) {
	s.probes.paused.Store(true)
	volumes, err := s.volumes(ctx)
	if err != nil {
		return "", err
	}
	if err := s.change(ctx, func(spec *corev1beta1.ShootSpec) { spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)} }); err != nil {
		return "", err
	}
	if err := s.healthy(ctx); err != nil {
		return "", err
	}
	for _, namespace := range []string{s.namespace, s.machines()} {
		if err := kube.Await(ctx, s.seed, &corev1.PodList{}, func(pods []*corev1.Pod) error {
			if len(pods) > 0 {
				return fmt.Errorf("%d pods are left, such as %s", len(pods), pods[0].Name)
			}
			return nil
		}, nil, client.InNamespace(namespace)); err != nil {
			return "", err
		}
	}
	kept, err := s.volumes(ctx)
	if err != nil {
		return "", err
	}
	if !slices.Equal(volumes, kept) {
		return "", fmt.Errorf("volumes were %v and are %v", volumes, kept)
	}
	return fmt.Sprintf("no pods, %d volumes kept", len(kept)), nil
}

// volumes are the volumes of the control plane.
func (s *story) volumes(ctx context.Context) ([]string, error) {
	all := &corev1.PersistentVolumeList{}
	if err := s.seed.List(ctx, all); err != nil {
		return nil, err
	}
	var names []string
	for _, volume := range all.Items {
		if claim := volume.Spec.ClaimRef; claim != nil && claim.Namespace == s.namespace {
			names = append(names, volume.Name)
		}
	}
	return names, nil
}

func (s *story) wake(ctx context.Context) (string, error) {
	if err := s.change(ctx, func(spec *corev1beta1.ShootSpec) { spec.Hibernation.Enabled = new(false) }); err != nil {
		return "", err
	}
	note, err := s.settled(ctx, func() error {
		if err := s.healthy(ctx); err != nil {
			return err
		}
		return errors.Join(s.pool(ctx, tested, 2, nil), s.pool(ctx, other, 1, nil))
	})
	if err != nil {
		return "", err
	}
	s.probes.paused.Store(false)
	return note, s.deployed(ctx, proberApp)
}

// remove deletes the shoot, and checks what is left.
func (s *story) remove(ctx context.Context) (string, error) {
	s.probes.paused.Store(true)
	if err := kube.DeleteShoot(ctx, s.garden, s.key); err != nil {
		return "", err
	}
	if err := kube.AwaitShoot(ctx, s.garden, s.key, kube.ShootGone, nil); err != nil {
		return "", err
	}
	if err := kube.Await(ctx, s.seed, &corev1.NamespaceList{}, func(namespaces []*corev1.Namespace) error {
		if len(namespaces) > 0 {
			return fmt.Errorf("namespace %s is left", s.namespace)
		}
		return nil
	}, nil, client.MatchingFields{"metadata.name": s.namespace}); err != nil {
		return "", err
	}
	return "no namespace, no volumes", kube.Await(ctx, s.seed, &corev1.PersistentVolumeList{}, func(volumes []*corev1.PersistentVolume) error {
		for _, volume := range volumes {
			if claim := volume.Spec.ClaimRef; claim != nil && claim.Namespace == s.namespace {
				return fmt.Errorf("volume %s of %s is left", volume.Name, claim.Name)
			}
		}
		return nil
	}, nil)
}
