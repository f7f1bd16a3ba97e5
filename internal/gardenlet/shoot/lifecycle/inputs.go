package lifecycle

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/clusterautoscaler"
	"gardener.cloud/gardener/internal/component/dependencywatchdog"
	etcdcomponent "gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubeproxy"
	"gardener.cloud/gardener/internal/component/kubescheduler"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/component/nodelocaldns"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/shoot/access"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/values"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/apiserver"
	"gardener.cloud/gardener/internal/stage/autoscaling"
	"gardener.cloud/gardener/internal/stage/cleanup"
	"gardener.cloud/gardener/internal/stage/containerruntime"
	"gardener.cloud/gardener/internal/stage/controlplane"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/deletion"
	"gardener.cloud/gardener/internal/stage/dns"
	"gardener.cloud/gardener/internal/stage/etcd"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/internal/stage/foundation"
	"gardener.cloud/gardener/internal/stage/hibernation"
	"gardener.cloud/gardener/internal/stage/infrastructure"
	"gardener.cloud/gardener/internal/stage/nodes"
	"gardener.cloud/gardener/internal/stage/publication"
	"gardener.cloud/gardener/internal/stage/restart"
	"gardener.cloud/gardener/internal/stage/restoration"
)

// kind is what a flow is for. Some inputs of the stages depend on it.
type kind int

// infrastructureTask is the task that other stages come after if the infrastructure chooses networks which they need.
const infrastructureTask = "infrastructure"

const (
	// kindRunning is for a control plane that runs in the end.
	kindRunning kind = iota
	// kindHibernating is for one that runs and is stopped.
	kindHibernating
	// kindHibernated is for one of which nothing runs: what is left of it is kept up to date.
	kindHibernated
	// kindDeletion is for one that is deleted, also by force.
	kindDeletion
	// kindMigration is for one that is released, as it moves to another seed.
	kindMigration
)

// kindOf returns what a flow that reconciles a shoot is for.
func kindOf(o *observed.State) kind {
	switch {
	case o.Hibernated():
		return kindHibernated
	case o.Shoot.HibernationWanted():
		return kindHibernating
	}
	return kindRunning
}

// stages are the inputs of all stages.
type stages struct {
	foundation     foundation.Inputs
	publication    publication.Inputs
	dns            dns.Inputs
	etcd           etcd.Inputs
	apiserver      apiserver.Inputs
	controlPlane   controlplane.Inputs
	infrastructure infrastructure.Inputs
	nodes          nodes.Inputs
	runtimes       containerruntime.Inputs
	autoscaling    autoscaling.Inputs
	vertical       autoscaling.VerticalInputs
	extensions     extension.Inputs
	restart        restart.Inputs
	hibernation    hibernation.Inputs
	cleanup        cleanup.Inputs
	deletion       deletion.Inputs
	migration      deletion.Migration
	// workers is whether the shoot has worker pools.
	workers bool
}

// stages returns the inputs for a flow of a shoot. Flows use them as they are.
func (r *reconciler) stages(o *observed.State, k kind) stages {
	shoot, workers := o.Shoot, !o.Shoot.Workerless()
	tasks := requestedTasks(shoot)
	requested := func(task string) bool { return slices.Contains(tasks, task) }
	of := values.Credentials(o, r.SeedAPI, r.Clock)
	of.TerminatesTLS = r.TerminateTLS && shoot.Annotations[constants.ShootDisableIstioTLSTermination] != "true"
	set := credentials.New(of)
	ends, restores := k == kindDeletion || k == kindMigration, o.Restoration != nil
	run := &stage.Run{
		SeedAPI: r.SeedAPI, GardenCache: r.gardenCache, GardenAPI: r.GardenAPI, Namespace: o.Namespace, Name: shoot.Name, FieldManager: fieldManager,
		Autoscalers: func(objects []client.Object) []client.Object { return values.Autoscalers(o, objects) },
		Target:      stage.NewTarget(r.access(o), r.Connect, r.Discover), Clock: r.Clock,
		SkipReadiness: !ends && skipsReadiness(shoot), Protected: protected(o),
		Controller: func(ctx context.Context, kind, typ string) (*corev1beta1.ControllerInstallation, error) {
			return extensionobject.ReadResponsible(ctx, r.gardenCache, kind, typ, r.SeedName)
		},
	}
	if restores {
		run.Restore = restoration.States(run, &o.Restoration.Saved)
	}
	source := values.Source{
		State: o, Credentials: set, Infrastructure: &infrastructure.Result{}, Images: r.Images, GardenerVersion: r.Gardener.Version, ETCD: r.ETCD,
	}
	early, afterNetworks := source, []string{infrastructureTask}
	if !workers || ends || o.NetworksKnown() { // others have the task infrastructure
		early.Infrastructure, afterNetworks = nil, nil
	}
	s := stages{
		workers: workers,
		foundation: foundation.Inputs{
			Run: run, Namespace: source.ControlPlaneNamespace(), Cluster: r.clusterValues(o, shoot), Credentials: set, Shoot: shoot,
			CloudProvider: o.CloudProvider,
		},
		publication: publication.Inputs{
			Run: run, Shoot: shoot, Project: o.Project, Issuer: o.Issuer, HadIssuer: issuer.Managed(shoot), Credentials: set,
		},
		dns: dns.Inputs{
			Run: run, Hosts: o.Hosts(), Internal: o.Internal, External: o.External, Gateway: o.Gateway, OtherGateways: o.OtherGateways, TTL: r.Config.DNSEntryTTLSeconds,
			IPFamilies:        ptr.Deref(shoot.Spec.Networking, corev1beta1.Networking{}).IPFamilies,
			InternalRequested: restores || requested(constants.ShootTaskDeployDNSRecordInternal),
			ExternalRequested: restores || requested(constants.ShootTaskDeployDNSRecordExternal),
		},
		etcd: etcd.Inputs{Run: run, Values: source.Etcd},
		controlPlane: controlplane.Inputs{
			Run: run, Credentials: set, Replicas: o.Replicas(), ResourceManager: early.ResourceManager, KubeControllerManager: early.KubeControllerManager,
			System: early.System, Kubeconfigs: source.Kubeconfigs(), Resources: source.Resources, Unused: source.Unused(), Deletes: k == kindDeletion,
			Rotation: controlplane.Rotation{
				CA: o.ReplacesCAs(), PreparesKey: o.PreparesServiceAccountKey(), CompletesKey: o.CompletesServiceAccountKey(),
			},
		},
		extensions: extension.Inputs{
			Run: run, Desired: o.Extensions, Stale: o.StaleExtensions, Hibernates: k == kindHibernating, Hibernated: k == kindHibernated,
		},
		restart: r.restartInputs(run, shoot),
		cleanup: cleanup.Inputs{
			Run: run, Periods: cleanup.PeriodsOf(shoot), OnlyInfrastructure: cleanup.OnlyInfrastructure(shoot), Failed: failedTasks(shoot),
		},
		deletion: deletion.Inputs{
			Run: run, HasNamespace: o.HasNamespace, HasWorkers: workers, Extensions: slices.Concat(o.Extensions, o.StaleExtensions),
			BackupEntry: client.ObjectKey{Namespace: shoot.Namespace, Name: o.BackupEntryName()},
		},
	}
	if of.TerminatesTLS {
		s.dns.Termination = &dns.Termination{Credentials: set}
	}
	switch k {
	case kindRunning, kindHibernating:
		s.etcd.Replicas, s.etcd.Ready = o.Members(), etcd.Healthy
	case kindDeletion, kindMigration:
		s.etcd.Replicas, s.etcd.Ready = o.Members(), etcd.Serves
		s.controlPlane.Rotation = controlplane.Rotation{} // nothing uses the new credentials for long
	case kindHibernated: // no members, and nothing to wait for
	}
	if k == kindMigration {
		s.migration = r.migrationInputs(run, o, set)
		s.deletion.HasNamespace, s.deletion.Extensions = o.Migration.Alive, o.Extensions // stale ones are deleted, not released
	} else if o.Seed.Spec.Backup != nil {
		s.etcd.BackupEntry = o.BackupEntry()
	}
	if restores && s.etcd.BackupEntry != nil {
		s.restoreEtcd(o, k)
	}
	s.apiserver = r.apiServerInputs(run, early, k)
	s.apiserver.IfPresent = append(s.extensions.IDsBeforeAPIServer(), afterNetworks...)
	if workers {
		s.controlPlane.KubeScheduler = early.KubeScheduler
		s.controlPlane.Accesses = append(s.controlPlane.Accesses, machinecontrollermanager.Name)
		s.infrastructure = infrastructure.Inputs{
			Run: run, Shoot: shoot, Credentials: set, Result: source.Infrastructure, Hibernated: k == kindHibernated,
			WriteCluster: func(ctx context.Context, shoot *corev1beta1.Shoot) error { return r.writeCluster(ctx, o, shoot) },
			Requested:    restores || requested(constants.ShootTaskDeployInfrastructure), Restores: restores,
			BeforeNetwork: s.extensions.IDsBeforeWorker(),
		}
		s.nodes = nodes.Inputs{
			Run: run, IfPresent: append([]string{infrastructureTask, infrastructure.ControlPlaneTask}, s.extensions.IDsBeforeWorker()...),
			OperatingSystemConfigs: early.OperatingSystemConfigs, Worker: source.Worker, TunnelServer: source.TunnelServer,
			TunnelAgent: source.TunnelAgent, APIServerProxy: source.APIServerProxy, CoreDNS: source.CoreDNS, MetricsServer: source.MetricsServer,
			NodeProblemDetector: source.NodeProblemDetector,
			Replicas:            o.Replicas(), ReplacesCAs: o.ReplacesCAs(),
			UpdatesInPlace: slices.ContainsFunc(shoot.Spec.Provider.Workers, updatedInPlace), Hibernates: k == kindHibernating, Deletes: k == kindDeletion, Restores: restores,
			MachineControllerManager: source.MachineControllerManager, NodeAgentDelay: observed.NodeAgentDelay(shoot),
		}
		s.nodes.Result = &nodes.Result{}
		s.runtimes = containerruntime.Inputs{
			Run: run, Desired: containerruntime.Desired(shoot.Spec.Provider.Workers), Hibernated: k == kindHibernated, Restores: restores,
		}
		if restores {
			s.runtimes.Removed = containerruntime.Removed(&o.Restoration.Saved)
		}
		s.autoscaling = autoscaling.Inputs{
			Run: run, Desired: shoot.ClusterAutoscalerWanted(), Hibernates: k == kindHibernating, Nodes: s.nodes.Result, Values: source.ClusterAutoscaler,
		}
		if s.autoscaling.Desired && k == kindRunning {
			s.controlPlane.Accesses = append(s.controlPlane.Accesses, clusterautoscaler.Name)
		}
		s.vertical = autoscaling.VerticalInputs{
			Run: run, Desired: shoot.VerticalPodAutoscalerWanted(), Hibernates: k == kindHibernating, Replicas: o.Replicas(), Values: source.VerticalPodAutoscaler,
		}
		if s.vertical.Desired {
			run.SystemAutoscalers = workload.SystemAutoscalers
			if k == kindRunning {
				s.controlPlane.Accesses = append(s.controlPlane.Accesses, verticalpodautoscaler.Parts()...)
			}
		}
		if kubeproxy.Enabled(shoot) {
			s.nodes.KubeProxy = early.KubeProxy
		}
		if nodelocaldns.Enabled(shoot) {
			s.nodes.NodeLocalDNS = source.NodeLocalDNS
		}
	}
	s.hibernation = s.hibernationInputs()
	return s
}

// apiServerInputs are those of the kube-apiserver.
func (r *reconciler) apiServerInputs(run *stage.Run, source values.Source, k kind) apiserver.Inputs {
	o := source.State
	rewrites := o.PreparesEncryptionKey() || observed.ChangesEncryption(o.Shoot)
	in := apiserver.Inputs{
		Run: run, Credentials: source.Credentials, Hibernated: k == kindHibernated,
		After: afterEtcd(o, k),
		Values: func(ctx context.Context, replicas int32) (kubeapiserver.Values, error) {
			values, err := apiServerValues(ctx, r.GardenAPI, source, replicas)
			if err != nil && o.Shoot.DeletionTimestamp != nil && usersFault(err) {
				return validAPIServerValues(ctx, r.GardenAPI, source, replicas)
			}
			return values, err
		},
		ReplacesKeys: o.PreparesServiceAccountKey() || rewrites,
		Encryption:   apiserver.Encryption{Desired: source.Encryption, Mark: source.EncryptionMark, Rewrite: rewrites},
	}
	if !in.Hibernated {
		in.Replicas = o.Replicas()
	}
	if o.EncryptsMore() {
		in.Encryption.Former = source.FormerEncryption
	}
	if key := o.EncryptionKey(); key.Phase == corev1beta1.RotationCompleting && o.Seed.Spec.Backup != nil {
		in.Encryption.Backup, in.Encryption.BackupSince = true, key.LastInitiationFinishedTime
	}
	return in
}

// afterEtcd are the tasks that the kube-apiserver comes after while CAs are replaced: an etcd that does not trust the new CA yet rejects a
// kube-apiserver with its certificate. Otherwise both start together.
func afterEtcd(o *observed.State, k kind) []string {
	switch {
	case !o.ReplacesCAs():
		return nil
	case k == kindHibernated:
		return []string{etcd.MainTask, etcd.EventsTask}
	}
	return []string{etcd.MainReadyTask, etcd.EventsReadyTask}
}

// restartInputs are those for the tasks in an annotation that restart pods.
func (r *reconciler) restartInputs(run *stage.Run, shoot *corev1beta1.Shoot) restart.Inputs {
	requested := requestedTasks(shoot)
	in := restart.Inputs{
		Run: run, SystemComponents: slices.Contains(requested, constants.ShootTaskRestartCoreAddons) && !shoot.Workerless(),
		At: func() time.Time {
			if begin := shoot.Status.RetryCycleStartTime; begin != nil {
				return begin.Time
			}
			return r.Clock.Now()
		},
	}
	if slices.Contains(requested, constants.ShootTaskRestartControlPlanePods) {
		in.ControlPlane = []string{kubecontrollermanager.Name}
		if !shoot.Workerless() {
			in.ControlPlane = append(in.ControlPlane, kubescheduler.Name)
		}
	}
	return in
}

// hibernationInputs are the deployments of the other stages, without pods.
func (s stages) hibernationInputs() hibernation.Inputs {
	in := hibernation.Inputs{
		KubeControllerManager: controlplane.DeployKubeControllerManager(s.controlPlane, 0),
		ResourceManager:       controlplane.DeployResourceManager(s.controlPlane, 0),
		KubeAPIServer:         apiserver.Deploy(s.apiserver, 0),
		EtcdMain:              etcd.Deploy(s.etcd, etcdcomponent.Main, 0),
		EtcdEvents:            etcd.Deploy(s.etcd, etcdcomponent.Events, 0),
	}
	if s.workers {
		in.KubeScheduler, in.TunnelServer = controlplane.DeployKubeScheduler(s.controlPlane, 0), nodes.DeployTunnelServer(s.nodes, 0)
		in.MachineControllerManager = nodes.StopMachineControllerManager(s.nodes)
	}
	return in
}

// access issues a kubeconfig for a run, with all permissions in the shoot.
func (r *reconciler) access(o *observed.State) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		return access.Kubeconfig(ctx, access.Values{
			SeedAPI: r.SeedAPI, Namespace: o.Namespace, Host: o.SeedHost(), Status: o.Shoot.Status.Credentials, Now: r.Clock.Now(),
		})
	}
}

// clusterValues are the content of the Cluster resource. The annotation to ignore a shoot is left out if its owner may not set it:
// extensions would ignore the shoot, and the flow would wait for them.
func (r *reconciler) clusterValues(o *observed.State, shoot *corev1beta1.Shoot) foundation.ClusterValues {
	if !mayOverwrite(facts{shoot: shoot, config: r.Config}) {
		shoot = shoot.DeepCopy()
		delete(shoot.Annotations, constants.ShootIgnore)
	}
	return foundation.ClusterValues{Name: o.Namespace, CloudProfile: o.CloudProfile, Seed: o.Seed, Shoot: shoot}
}

// writeCluster writes the Cluster resource of a shoot, with what its status says now.
func (r *reconciler) writeCluster(ctx context.Context, o *observed.State, shoot *corev1beta1.Shoot) error {
	return foundation.WriteCluster(ctx, r.SeedAPI, r.clusterValues(o, shoot))
}

// protected is whether the dependency-watchdog probes a shoot: not while it is hibernated or becomes so.
func protected(o *observed.State) bool {
	return !o.Shoot.Workerless() && dependencywatchdog.ProberEnabled(o.Seed) && !o.Shoot.HibernationWanted() && !o.Shoot.Status.Hibernated
}

// failedTasks are the IDs of the tasks that have failed in the pass before.
func failedTasks(shoot *corev1beta1.Shoot) []string {
	var ids []string
	for _, e := range shoot.Status.LastErrors {
		if e.TaskID != nil {
			ids = append(ids, *e.TaskID)
		}
	}
	return ids
}
