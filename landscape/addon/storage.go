package addon

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// StorageClass is the name of the default storage class.
	StorageClass = "local"
	provisioner  = "local-storage.gardener.cloud"
	storageDir   = "/var/lib/containerd/local-storage" // On the machine's own disk, where containers' data is as well.
)

// localStorage makes volumes from directories of the node that a pod was scheduled to.
func localStorage(v Values) ([]client.Object, error) {
	image, err := v.image("local-storage")
	if err != nil {
		return nil, err
	}
	const name, namespace = "local-storage", "kube-system"
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: StorageClass, Labels: labels(name), Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       provisioner,
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	w := workload{
		name: name, namespace: namespace, priority: "system-node-critical",
		container: corev1.Container{
			Image: image,
			Args:  []string{"--directory=" + storageDir, "--name=" + provisioner},
			Env:   []corev1.EnvVar{fieldEnv("NODE_NAME", "spec.nodeName")},
			// It makes directories for others, and deletes what others, root included, wrote into them.
			SecurityContext: &corev1.SecurityContext{
				RunAsUser: ptr.To[int64](0), ReadOnlyRootFilesystem: ptr.To(true), AllowPrivilegeEscalation: ptr.To(false),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_OVERRIDE", "FOWNER", "CHOWN"}},
			},
			Resources:    requests("5m", "24Mi"),
			VolumeMounts: []corev1.VolumeMount{{Name: "storage", MountPath: storageDir}},
		},
		volumes: []corev1.Volume{hostPath("storage", storageDir, corev1.HostPathDirectoryOrCreate)},
	}
	set := w.daemonSet()
	set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	objects := clusterRole(namespace, name,
		rule("", "persistentvolumes", "get list watch create patch update delete"),
		rule("", "persistentvolumeclaims", "get list watch update"),
		rule("storage.k8s.io", "storageclasses", "get list watch"),
		rule("", "nodes", "get list watch"),
		rule("", "events", "create patch update"),
		rule("events.k8s.io", "events", "create patch update"),
	)
	return append(objects, class, set), nil
}
