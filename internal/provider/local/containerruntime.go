package local

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
)

// runtimeType is the type of the ContainerRuntimes that this extension is responsible for. The RuntimeClass, and the runtime in containerd's configuration,
// have the name, too.
const runtimeType = "crun"

// containerRuntimes install crun on nodes with containerd 2. When a pool loses the runtime, its RuntimeClass is deleted, and what is on the nodes stays:
// pods that still run need the binary until they end.
type containerRuntimes struct {
	generic.ContainerRuntime

	image string
}

func newContainerRuntimes(c client.Client, image string) *containerRuntimes {
	a := &containerRuntimes{image: image}
	a.ContainerRuntime = generic.ContainerRuntime{
		Client: c, Owner: Name,
		Shoot: func(context.Context, *extensionsv1alpha1.ContainerRuntime, *extension.Cluster) ([]client.Object, error) {
			return []client.Object{runtimeClass()}, nil
		},
		Pool: func(_ context.Context, runtime *extensionsv1alpha1.ContainerRuntime, _ *extension.Cluster) ([]client.Object, error) {
			return runtimeInstaller(runtime, image), nil
		},
	}
	return a
}

// Reconcile applies the RuntimeClass, and what installs crun on the nodes of the pool. It does not wait for it, as nodes may be created only later.
func (a *containerRuntimes) Reconcile(ctx context.Context, runtime *extensionsv1alpha1.ContainerRuntime, cluster *extension.Cluster) error {
	if err := noConfig(providerConfig, runtime.Spec.ProviderConfig); err != nil {
		return err
	}
	if a.image == "" {
		return errors.New("provider-local is configured without an image of crun")
	}
	return a.ContainerRuntime.Reconcile(ctx, runtime, cluster)
}

// runtimeClass is what pods name in runtimeClassName. They get to nodes of pools with the runtime.
func runtimeClass() *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: runtimeType},
		Handler:    runtimeType,
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{
			fmt.Sprintf(extensionsv1alpha1.ContainerRuntimeNameWorkerLabel, runtimeType): "true",
		}},
	}
}

// runtimeInstaller runs once on each node of a pool. It is ready when containerd has the runtime. Root is enough to write the files and to have systemd
// restart containerd; it needs no capabilities.
func runtimeInstaller(runtime *extensionsv1alpha1.ContainerRuntime, image string) []client.Object {
	const host = "/host"
	container := corev1.Container{
		Image: image, Resources: workload.Requests("1m", "8Mi"),
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: new(int64(0)), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	install := *container.DeepCopy()
	install.Name, install.Args = "install", []string{"install", "--root=" + host, "--directory=" + runtime.Spec.BinaryPath}
	install.VolumeMounts = []corev1.VolumeMount{
		{Name: "binaries", MountPath: host + runtime.Spec.BinaryPath},
		{Name: "containerd", MountPath: host + "/etc/containerd"},
		{Name: "systemd", MountPath: "/run/systemd", ReadOnly: true},
	}
	container.Args = []string{"wait"}
	w := workload.Workload{
		Name: "crun-installer-" + runtime.Spec.WorkerPool.Name, Namespace: metav1.NamespaceSystem, PriorityClass: "system-node-critical",
		HostNetwork: true, // so that it does not wait for the pod network, and containerd restarts before other pods start
		Container:   container,
		Volumes: []corev1.Volume{
			workload.HostPath("binaries", runtime.Spec.BinaryPath, corev1.HostPathDirectoryOrCreate),
			workload.HostPath("containerd", "/etc/containerd", corev1.HostPathDirectory),
			workload.HostPath("systemd", "/run/systemd", corev1.HostPathDirectory),
		},
	}
	account, daemonSet := w.ServiceAccount(), w.DaemonSet()
	account.AutomountServiceAccountToken = new(false)
	daemonSet.Spec.Template.Spec.NodeSelector = runtime.Spec.WorkerPool.Selector.MatchLabels
	daemonSet.Spec.Template.Spec.InitContainers = []corev1.Container{install}
	return []client.Object{account, daemonSet}
}
