package machinecontroller

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
)

// readWithin is how long reading the cache may take for a scrape.
const readWithin = 5 * time.Second

// phases are the values of mcm_machine_current_status_phase.
var phases = []machinev1alpha1.MachinePhase{
	machinev1alpha1.MachineTerminating, machinev1alpha1.MachineUnknown, machinev1alpha1.MachineFailed, machinev1alpha1.MachineCrashLoopBackOff,
	machinev1alpha1.MachinePending, machinev1alpha1.MachineAvailable, machinev1alpha1.MachineRunning,
}

// phaseValue is a phase as a number: above zero if the machine is usable, below zero if it is unhealthy or being deleted.
func phaseValue(phase machinev1alpha1.MachinePhase) float64 {
	i := slices.Index(phases, phase)
	if i < 0 {
		return 0 // between Pending and another phase
	}
	return float64(i - slices.Index(phases, machinev1alpha1.MachinePending))
}

// machineCollector collects metrics of Machines from the cache, so that a series is removed with its object.
type machineCollector struct {
	controlCache client.Reader
	namespace    string
	frozen       func() bool
}

// setCollector collects those of MachineSets and MachineDeployments.
type setCollector struct {
	controlCache client.Reader
	namespace    string
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("mcm_"+name, help, labels, nil)
}

var (
	machineItems       = desc("machine_items_total", "Number of Machines.")
	machineInfo        = desc("machine_info", "Machines, with their properties as labels. The value is 1.", "name", "namespace", "createdAt", "spec_provider_id", "spec_class_name", "node")
	machinePhase       = desc("machine_current_status_phase", "Phase of a Machine: -4 Terminating, -3 Unknown, -2 Failed, -1 CrashLoopBackOff, 0 Pending, 1 Available, 2 Running.", "name", "namespace")
	machineCreated     = desc("machine_created", "When a Machine was created, as a Unix time.", "name", "namespace")
	setItems           = desc("machineset_items_total", "Number of MachineSets.")
	setReplicas        = desc("machineset_spec_replicas", "Desired Machines of a MachineSet.", "name", "namespace")
	setReady           = desc("machineset_status_ready_replicas", "Healthy Machines of a MachineSet.", "name", "namespace")
	setFailed          = desc("machineset_failed_machines", "Machines of a MachineSet whose last operation failed.", "name", "namespace")
	deploymentItems    = desc("machinedeployment_items_total", "Number of MachineDeployments.")
	deploymentReplicas = desc("machinedeployment_spec_replicas", "Desired Machines of a MachineDeployment.", "name", "namespace")
	deploymentReady    = desc("machinedeployment_status_ready_replicas", "Healthy Machines of a MachineDeployment.", "name", "namespace")
	deploymentUpdated  = desc("machinedeployment_status_updated_replicas", "Machines of a MachineDeployment that have its template.", "name", "namespace")
	deploymentFailed   = desc("machinedeployment_failed_machines", "Machines of a MachineDeployment whose last operation failed.", "name", "namespace")
	frozenDesc         = desc("machine_controller_frozen", "1 while the target cluster is not reachable, so that no machine fails its health check.")
	scrapeFailures     = desc("misc_scrape_failure", "1 if the objects could not be read for this scrape.")
)

// Describe implements prometheus.Collector.
func (c *machineCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{machineItems, machineInfo, machinePhase, machineCreated, frozenDesc, scrapeFailures} {
		descs <- d
	}
}

// Describe implements prometheus.Collector.
func (c *setCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		setItems, setReplicas, setReady, setFailed, deploymentItems, deploymentReplicas, deploymentReady, deploymentUpdated, deploymentFailed, scrapeFailures,
	} {
		descs <- d
	}
}

// gauges writes the values of a scrape.
type gauges chan<- prometheus.Metric

func (out gauges) set(d *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// read lists objects of a namespace, and says whether that has failed.
func (out gauges) read(controlCache client.Reader, namespace string, lists ...client.ObjectList) {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	failed := 0.0
	for _, list := range lists {
		if err := controlCache.List(ctx, list, client.InNamespace(namespace)); err != nil {
			failed = 1
		}
	}
	out.set(scrapeFailures, failed)
}

// Collect implements prometheus.Collector.
func (c *machineCollector) Collect(metrics chan<- prometheus.Metric) {
	out, machines := gauges(metrics), &machinev1alpha1.MachineList{}
	out.read(c.controlCache, c.namespace, machines)
	out.set(frozenDesc, map[bool]float64{true: 1}[c.frozen()])
	out.set(machineItems, float64(len(machines.Items)))
	for i := range machines.Items {
		m := &machines.Items[i]
		out.set(machineInfo, 1, m.Name, m.Namespace, m.CreationTimestamp.UTC().Format(time.RFC3339), m.Spec.ProviderID, m.Spec.Class.Name, m.Labels[machinev1alpha1.NodeLabelKey])
		out.set(machinePhase, phaseValue(m.Status.CurrentStatus.Phase), m.Name, m.Namespace)
		out.set(machineCreated, float64(m.CreationTimestamp.Unix()), m.Name, m.Namespace)
	}
}

// Collect implements prometheus.Collector.
func (c *setCollector) Collect(metrics chan<- prometheus.Metric) {
	out, sets, deployments := gauges(metrics), &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineDeploymentList{}
	out.read(c.controlCache, c.namespace, sets, deployments)
	out.set(setItems, float64(len(sets.Items)))
	for i := range sets.Items {
		s := &sets.Items[i]
		out.set(setReplicas, float64(s.Spec.Replicas), s.Name, s.Namespace)
		out.set(setReady, float64(s.Status.ReadyReplicas), s.Name, s.Namespace)
		out.set(setFailed, float64(len(s.Status.FailedMachines)), s.Name, s.Namespace)
	}
	out.set(deploymentItems, float64(len(deployments.Items)))
	for i := range deployments.Items {
		d := &deployments.Items[i]
		out.set(deploymentReplicas, float64(d.Spec.Replicas), d.Name, d.Namespace)
		out.set(deploymentReady, float64(d.Status.ReadyReplicas), d.Name, d.Namespace)
		out.set(deploymentUpdated, float64(d.Status.UpdatedReplicas), d.Name, d.Namespace)
		out.set(deploymentFailed, float64(len(d.Status.FailedMachines)), d.Name, d.Namespace)
	}
}

// counted counts the calls of a driver.
type counted struct {
	driver.Driver
	provider        string
	calls, failures *prometheus.CounterVec
}

func newCounted(d driver.Driver, provider string, registry prometheus.Registerer) (driver.Driver, error) {
	c := counted{
		Driver: d, provider: provider,
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mcm_cloud_api_requests_total", Help: "Calls of the driver."}, []string{"provider", "service"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcm_cloud_api_requests_failed_total", Help: "Calls of the driver that failed, except those for machines that were not found.",
		}, []string{"provider", "service"}),
	}
	for _, vec := range []prometheus.Collector{c.calls, c.failures} {
		if err := registry.Register(vec); err != nil {
			return nil, err
		}
	}
	if notifier, ok := d.(driver.Notifier); ok {
		return countedNotifier{counted: c, Notifier: notifier}, nil
	}
	return c, nil
}

// countedNotifier is a counted driver that is a Notifier.
type countedNotifier struct {
	counted
	driver.Notifier
}

func (c counted) count(service string, err error) {
	c.calls.WithLabelValues(c.provider, service).Inc()
	if err != nil && driver.CodeOf(err) != driver.NotFound {
		c.failures.WithLabelValues(c.provider, service).Inc()
	}
}

// CreateMachine implements driver.Driver.
func (c counted) CreateMachine(ctx context.Context, request driver.Request) (driver.Status, error) {
	status, err := c.Driver.CreateMachine(ctx, request)
	c.count("create", err)
	return status, err
}

// GetMachineStatus implements driver.Driver.
func (c counted) GetMachineStatus(ctx context.Context, request driver.Request) (driver.Status, error) {
	status, err := c.Driver.GetMachineStatus(ctx, request)
	c.count("get", err)
	return status, err
}

// DeleteMachine implements driver.Driver.
func (c counted) DeleteMachine(ctx context.Context, request driver.Request) error {
	err := c.Driver.DeleteMachine(ctx, request)
	c.count("delete", err)
	return err
}

// ListMachines implements driver.Driver.
func (c counted) ListMachines(ctx context.Context, request driver.ClassRequest) (map[string]string, error) {
	machines, err := c.Driver.ListMachines(ctx, request)
	c.count("list", err)
	return machines, err
}
