package lifecycle

import (
	"slices"

	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/apiserver"
	"gardener.cloud/gardener/internal/stage/cleanup"
	"gardener.cloud/gardener/internal/stage/controlplane"
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
	"gardener.cloud/gardener/pkg/flow"
)

// reconcileFlow composes the flow that creates or changes a control plane, or hibernates it.
func (r *reconciler) reconcileFlow(o *observed.State) (*flow.Flow, error) {
	var tasks []flow.Task
	s := r.stages(o)
	skip := skipsReadiness(o.Shoot)
	s.foundation.Run.SkipReadiness = skip
	switch {
	case o.Hibernated():
		tasks = s.hibernated()
	case o.Shoot.HibernationWanted():
		tasks = s.hibernating()
	default:
		tasks = s.running()
	}
	tasks = append(tasks, foundation.Cleanup(s.foundation, flow.Last(tasks)...))
	if skip {
		tasks = skipReadiness(tasks)
	}
	return flow.New("Shoot reconciliation", tasks...)
}

// running are the tasks after which a control plane runs. Within the order of the stages, tasks start as early as they can.
func (s stages) running() []flow.Task {
	tasks := slices.Concat(
		foundation.Tasks(s.foundation),
		publication.Tasks(s.publication),       // after the credentials
		dns.Tasks(s.dns),                       // after the namespace
		etcd.Tasks(s.etcd),                     // after its credentials, and with backups after the BackupEntry
		apiserver.Tasks(s.apiserver),           // after the credentials; while CAs are replaced, after etcd
		controlplane.Tasks(s.controlPlane),     // after kube-apiserver is ready
		apiserver.EncryptionTasks(s.apiserver), // after all pods of kube-apiserver have the new keys, and have their tokens
	)
	if s.workers {
		tasks = slices.Concat(tasks,
			infrastructure.Tasks(s.infrastructure), // after the credentials; ControlPlane and Network after gardener-resource-manager
			nodes.Tasks(s.nodes),                   // the Worker after the Infrastructure and kube-apiserver; with nodes, after that is ready
		)
	}
	return slices.Concat(tasks,
		extension.Tasks(s.extensions), // before kube-apiserver, when it is ready, or after the Worker
		restart.Tasks(s.restart),      // when the components are ready
	)
}

// hibernating are the tasks of running, but for those that wait for nodes, and then those that stop what runs.
func (s stages) hibernating() []flow.Task {
	s.nodes.Hibernates = true
	tasks := s.running()
	tasks = append(tasks, hibernation.Tasks(s.hibernation, tasks)...)
	return append(tasks, dns.Deletion(s.dns.Run, "stop-kube-apiserver")...) // nothing answers at the names any more
}

// hibernated are the tasks of a shoot of which nothing runs: what stays is kept up to date, and no pods are waited for.
func (s stages) hibernated() []flow.Task {
	s.etcd.Replicas, s.etcd.Ready = 0, nil
	s.apiserver.Replicas, s.apiserver.Hibernated = 0, true
	s.apiserver.After = afterEtcd(s.etcd, s.replacesCAs)
	s.infrastructure.Hibernated, s.extensions.Hibernated = true, true
	tasks := slices.Concat(
		foundation.Tasks(s.foundation),
		publication.Tasks(s.publication), // after the credentials
		[]flow.Task{dns.Exposure(s.dns)}, // after the namespace
		dns.Deletion(s.dns.Run, "cluster"),
		etcd.Tasks(s.etcd),           // after its credentials, and with backups after the BackupEntry
		apiserver.Tasks(s.apiserver), // after the credentials; while CAs are replaced, after etcd
	)
	if s.workers {
		tasks = slices.Concat(tasks, infrastructure.Tasks(s.infrastructure)) // after the credentials
	}
	return slices.Concat(tasks, extension.Tasks(s.extensions)) // after the namespace
}

// deletionFlow composes the flow that deletes a control plane, with everything that it has created elsewhere.
func (r *reconciler) deletionFlow(o *observed.State) (*flow.Flow, error) {
	var tasks []flow.Task
	s := r.stages(o)
	switch {
	case o.HasNamespace && s.workers: // machines, volumes and load balancers are deleted by what runs in the control plane
		s.etcd.Ready = etcd.Serves
		tasks = slices.Concat(
			foundation.Tasks(s.foundation),
			publication.Tasks(s.publication),   // after the credentials
			etcd.Tasks(s.etcd),                 // after its credentials, and with backups after the BackupEntry
			apiserver.Tasks(s.apiserver),       // after the credentials; while CAs are replaced, after etcd
			controlplane.Tasks(s.controlPlane), // after kube-apiserver is ready
		)
		if !cleanup.Skipped(o.Shoot) {
			if o.Shoot.HibernationWanted() || o.Shoot.Status.Hibernated {
				tasks = append(tasks, infrastructure.WakeUp(s.infrastructure)) // after gardener-resource-manager is ready
				s.cleanup.After = []string{"control-plane"}
			}
			tasks = append(tasks, cleanup.Tasks(s.cleanup)...) // after kube-apiserver is ready and kube-controller-manager deployed
		}
	case o.HasNamespace:
		tasks = []flow.Task{foundation.Cluster(s.foundation)}
	}
	return s.end("Shoot deletion", append(tasks, deletion.Tasks(s.deletion, tasks)...)) // after all of them
}

// forcedFlow composes the flow that deletes a control plane without the help of the cluster itself, and of extensions that do not work.
func (r *reconciler) forcedFlow(o *observed.State) (*flow.Flow, error) {
	var tasks []flow.Task
	s := r.stages(o)
	if o.HasNamespace {
		tasks = append(tasks, foundation.Cluster(s.foundation))
	}
	return s.end("Shoot deletion by force", append(tasks, deletion.ForceTasks(s.deletion)...)) // after the Cluster resource
}

// end composes a flow that deletes. The Cluster resource and what is published are deleted last.
func (s stages) end(name string, tasks []flow.Task) (*flow.Flow, error) {
	last := flow.Last(tasks)
	return flow.New(name, append(tasks, deletion.Cluster(s.deletion, last...), publication.Deletion(s.publication, last...))...)
}
