package lifecycle

import (
	"slices"

	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/apiserver"
	"gardener.cloud/gardener/internal/stage/autoscaling"
	"gardener.cloud/gardener/internal/stage/cleanup"
	"gardener.cloud/gardener/internal/stage/containerruntime"
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
	"gardener.cloud/gardener/internal/stage/restoration"
	"gardener.cloud/gardener/pkg/flow"
)

// reconcileFlow composes the flow that creates or changes a control plane, or hibernates it.
func (r *reconciler) reconcileFlow(o *observed.State) (*flow.Flow, error) {
	var tasks []flow.Task
	k := kindOf(o)
	s := r.stages(o, k)
	switch k {
	case kindHibernated:
		tasks = s.hibernated()
	case kindHibernating:
		tasks = s.hibernating()
	case kindRunning, kindDeletion:
		tasks = s.running()
	}
	if o.Restoration != nil {
		tasks = restoring(s, o, tasks)
	}
	tasks = append(tasks, foundation.Cleanup(s.foundation, flow.Last(tasks)...))
	if s.foundation.Run.SkipReadiness {
		tasks = withoutReadiness(tasks)
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
			autoscaling.Tasks(s.autoscaling),       // after the tokens and the Worker is written; before that, while the shoot is hibernated
			autoscaling.VerticalTasks(s.vertical),  // after the tokens
			containerruntime.Tasks(s.runtimes),     // when kube-apiserver is ready
		)
	}
	return slices.Concat(tasks,
		extension.Tasks(s.extensions), // before kube-apiserver, when it is ready, or after the Worker
		restart.Tasks(s.restart),      // when the components are ready
	)
}

// hibernating are the tasks of running, but for those that wait for nodes, and then those that stop what runs.
func (s stages) hibernating() []flow.Task {
	tasks := s.running()
	tasks = append(tasks, hibernation.Tasks(s.hibernation, tasks)...)
	if s.workers {
		tasks = append(tasks, infrastructure.HibernatedControlPlane(s.infrastructure))
	}
	tasks = append(tasks, dns.Deletion(s.dns.Run, "stop-kube-apiserver")...) // nothing answers at the names any more
	return append(tasks, extension.HibernationTasks(s.extensions, flow.Last(tasks)...)...)
}

// hibernated are the tasks of a shoot of which nothing runs: what stays is kept up to date, and no pods are waited for.
func (s stages) hibernated() []flow.Task {
	tasks := slices.Concat(
		foundation.Tasks(s.foundation),
		publication.Tasks(s.publication), // after the credentials
		dns.Exposure(s.dns),              // after the namespace
		dns.Deletion(s.dns.Run, "cluster"),
		etcd.Tasks(s.etcd),           // after its credentials, and with backups after the BackupEntry
		apiserver.Tasks(s.apiserver), // after the credentials; while CAs are replaced, after etcd
	)
	if s.workers {
		tasks = slices.Concat(tasks,
			infrastructure.Tasks(s.infrastructure), // after the credentials
			containerruntime.Tasks(s.runtimes),     // after the namespace, if they are restored
		)
	}
	return slices.Concat(tasks, extension.Tasks(s.extensions)) // after the namespace
}

// deletionFlow composes the flow that deletes a control plane, with everything that it has created elsewhere.
func (r *reconciler) deletionFlow(o *observed.State) (*flow.Flow, error) {
	var tasks []flow.Task
	s := r.stages(o, kindDeletion)
	switch {
	case o.HasNamespace && s.workers: // machines, volumes and load balancers are deleted by what runs in the control plane
		tasks = slices.Concat(
			foundation.Tasks(s.foundation),
			publication.Tasks(s.publication),   // after the credentials
			etcd.Tasks(s.etcd),                 // after its credentials, and with backups after the BackupEntry
			apiserver.Tasks(s.apiserver),       // after the credentials; while CAs are replaced, after etcd
			controlplane.Tasks(s.controlPlane), // after kube-apiserver is ready
			[]flow.Task{
				infrastructure.ExistingControlPlane(s.infrastructure), // after gardener-resource-manager is ready
				nodes.MachineControllerManager(s.nodes),               // after its token and the ControlPlane
			},
			cleanup.Tasks(s.cleanup), // after kube-apiserver and the ControlPlane are ready, and kube-controller-manager deployed
		)
	case o.HasNamespace:
		tasks = []flow.Task{foundation.Cluster(s.foundation)}
	}
	return s.end("Shoot deletion", append(tasks, deletion.Tasks(s.deletion, tasks)...)) // after all of them
}

// forcedFlow composes the flow that deletes a control plane without the help of the cluster itself, and of extensions that do not work.
func (r *reconciler) forcedFlow(o *observed.State) (*flow.Flow, error) {
	var tasks []flow.Task
	s := r.stages(o, kindDeletion)
	if o.HasNamespace {
		tasks = append(tasks, foundation.Cluster(s.foundation))
	}
	return s.end("Shoot deletion by force", append(tasks, deletion.ForceTasks(s.deletion)...)) // after the Cluster resource
}

// restoring adds what restores the credentials. They exist before others are generated.
func restoring(s stages, o *observed.State, tasks []flow.Task) []flow.Task {
	tasks = append([]flow.Task{restoration.Credentials(s.foundation.Run, &o.Restoration.Saved)}, tasks...)
	for i := range tasks {
		if tasks[i].ID == "credentials-etcd" {
			tasks[i] = tasks[i].IfPresent("restored-credentials")
		}
	}
	return tasks
}

// migrationFlow composes the flow that releases a control plane, which moves to another seed.
func (r *reconciler) migrationFlow(o *observed.State) (*flow.Flow, error) {
	var tasks []flow.Task
	s, m := r.stages(o, kindMigration), o.Migration
	runs := m.Alive && m.HasAPIServer
	if m.Alive {
		tasks = foundation.Tasks(s.foundation)
	}
	if runs || m.Alive && m.NeedsSnapshot {
		tasks = append(tasks, etcd.Tasks(s.etcd)...) // after its credentials
	}
	if runs {
		server := apiserver.Tasks(s.apiserver)                          // after the credentials
		if !o.Shoot.HibernationWanted() && !o.Shoot.Status.Hibernated { // it stays as it is
			server = flow.Without(server, "kube-apiserver", "old-kube-apiserver-gone")
		}
		tasks = slices.Concat(tasks, server, controlplane.ResourceManagerTasks(s.controlPlane)) // after kube-apiserver is ready
	}
	tasks = append(tasks, deletion.MigrationTasks(s.deletion, s.migration, tasks)...) // after all of them
	return flow.New("Shoot migration", append(tasks, deletion.Cluster(s.deletion, flow.Last(tasks)...))...)
}

// end composes a flow that deletes. The Cluster resource and what is published are deleted last.
func (s stages) end(name string, tasks []flow.Task) (*flow.Flow, error) {
	last := flow.Last(tasks)
	return flow.New(name, append(tasks, deletion.Cluster(s.deletion, last...), publication.Deletion(s.publication, last...))...)
}
