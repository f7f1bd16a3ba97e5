package copybackupstask

import (
	"fmt"
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/etcddruid/etcd"
)

// jobValues are what the Job of a task is rendered from.
type jobValues struct {
	// Task is the task, of which only metadata and spec are used.
	Task *druidv1alpha1.EtcdCopyBackupsTask
	// Image is the image of etcd-backup-restore.
	Image string
	// SourceHostPath and TargetHostPath are the directories on the node with the buckets of the provider Local.
	SourceHostPath, TargetHostPath string
}

// nonRoot is the user and the group of the container.
const nonRoot = 65532

func jobName(task string) string { return task + "-worker" }

// object renders the Job of a task.
func object(v jobValues) (*batchv1.Job, error) {
	task, spec := v.Task, &v.Task.Spec
	labels := map[string]string{
		druidv1alpha1.LabelManagedByKey: druidv1alpha1.LabelManagedByValue, druidv1alpha1.LabelPartOfKey: task.Name,
		druidv1alpha1.LabelComponentKey: "etcd-copy-backups-job", druidv1alpha1.LabelAppNameKey: jobName(task.Name),
	}
	podLabels := maps.Clone(spec.PodLabels)
	if podLabels == nil {
		podLabels = map[string]string{}
	}
	maps.Copy(podLabels, labels)
	args := []string{"etcd-backup-restore", "copy"}
	var (
		volumes []corev1.Volume
		mounts  []corev1.VolumeMount
	)
	for _, side := range []struct {
		prefix, suffix, hostPath string
		store                    *druidv1alpha1.StoreSpec
		path                     string
	}{
		{"source-", "-source", v.SourceHostPath, &spec.SourceStore, "sourceStore"},
		{"", "-target", v.TargetHostPath, &spec.TargetStore, "targetStore"},
	} {
		store, volume, mount, err := etcd.StoreAccess("store"+side.suffix, side.suffix, side.store, side.hostPath)
		if err != nil {
			return nil, fmt.Errorf("spec.%s: %w", side.path, err)
		}
		for _, flag := range []struct{ name, value string }{
			{"provider", store.Provider},
			{"container", store.Container},
			{"prefix", store.Prefix},
			{"credentials-dir", store.CredentialsDir},
			{"endpoint", store.Endpoint},
		} {
			if flag.value != "" {
				args = append(args, "--"+side.prefix+flag.name+"="+flag.value)
			}
		}
		if volume != nil {
			volumes, mounts = append(volumes, *volume), append(mounts, *mount)
		}
	}
	// It becomes the termination message of the pod, which says how recent the copied data are.
	args = append(args, "--result-file="+corev1.TerminationMessagePathDefault)
	if age := spec.MaxBackupAge; age != nil && *age > 0 {
		args = append(args, "--max-backup-age="+strconv.Itoa(int(*age)))
	}
	if number := spec.MaxBackups; number != nil && *number > 0 {
		args = append(args, "--max-backups="+strconv.Itoa(int(*number)))
	}
	if wait := spec.WaitForFinalSnapshot; wait != nil && wait.Enabled {
		args = append(args, "--wait-for-final-snapshot")
		if wait.Timeout != nil && wait.Timeout.Duration > 0 {
			args = append(args, "--wait-for-final-snapshot-timeout="+wait.Timeout.Duration.String())
		}
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: task.Namespace, Name: jobName(task.Name), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: druidv1alpha1.SchemeGroupVersion.String(), Kind: "EtcdCopyBackupsTask", Name: task.Name, UID: task.UID,
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyOnFailure, AutomountServiceAccountToken: new(false),
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(nonRoot)), RunAsGroup: new(int64(nonRoot)), FSGroup: new(int64(nonRoot))},
				Containers: []corev1.Container{{
					Name: "copy-backups", Image: v.Image, ImagePullPolicy: corev1.PullIfNotPresent, Args: args, VolumeMounts: mounts,
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("23m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
					}},
					SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
				}},
				Volumes: volumes,
			},
		}},
	}, nil
}
