package etcd

import (
	"cmp"
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	component "gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func TestCopiesFrom(t *testing.T) {
	in := func(bucket string) *corev1beta1.BackupEntry {
		return &corev1beta1.BackupEntry{Spec: corev1beta1.BackupEntrySpec{BucketName: bucket}}
	}
	copied := in("here")
	copied.Annotations = map[string]string{"backupentry.core.gardener.cloud/copied-from": "there"}
	releasedThere := in("there")
	releasedThere.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate}
	for name, tc := range map[string]struct {
		etcd          bool
		entry, source *corev1beta1.BackupEntry
		want          string
		fails         bool
	}{
		"not begun":                             {entry: in("there"), want: "there"},
		"begun":                                 {entry: in("there"), source: in("there"), want: "there"},
		"the BackupEntry has moved":             {entry: in("here"), source: in("there"), want: "there"},
		"copied":                                {etcd: true, entry: in("here"), source: in("there")},
		"it is bound to its former seed again":  {entry: in("here")},
		"etcd is of an earlier stay":            {etcd: true, entry: releasedThere, fails: true},
		"the other BackupEntry was deleted":     {entry: copied, want: "there"},
		"the other BackupEntry was changed":     {entry: copied, source: in("here"), want: "there"},
		"the other BackupEntry has no other":    {entry: in("here"), source: in("here"), fails: true},
		"no BackupEntry, data would be missing": {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CopiesFrom(tc.etcd, tc.entry, tc.source, "here")
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("CopiesFrom() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestCopied(t *testing.T) {
	task := func(observed int64, conditions ...druidv1alpha1.Condition) *druidv1alpha1.EtcdCopyBackupsTask {
		return &druidv1alpha1.EtcdCopyBackupsTask{
			ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: druidv1alpha1.EtcdCopyBackupsTaskStatus{ObservedGeneration: &observed, Conditions: conditions},
		}
	}
	succeeded := druidv1alpha1.Condition{Type: druidv1alpha1.EtcdCopyBackupsTaskSucceeded, Status: druidv1alpha1.ConditionTrue}
	failed := druidv1alpha1.Condition{Type: druidv1alpha1.EtcdCopyBackupsTaskFailed, Status: druidv1alpha1.ConditionTrue}
	for name, tc := range map[string]struct {
		task                *druidv1alpha1.EtcdCopyBackupsTask
		failure, unfinished bool
	}{
		"new":        {task: &druidv1alpha1.EtcdCopyBackupsTask{}, unfinished: true},
		"outdated":   {task: task(1, succeeded), unfinished: true},
		"begun":      {task: task(2, druidv1alpha1.Condition{Type: druidv1alpha1.EtcdCopyBackupsTaskSucceeded, Status: druidv1alpha1.ConditionFalse}), unfinished: true},
		"has failed": {task: task(2, failed), failure: true},
		"done":       {task: task(2, succeeded)},
	} {
		t.Run(name, func(t *testing.T) {
			failure, unfinished := copied(tc.task)
			if (failure != nil) != tc.failure || (unfinished != nil) != tc.unfinished {
				t.Errorf("copied() = %v, %v", failure, unfinished)
			}
		})
	}
}

// A shoot that was to be recovered on another seed, but was bound back, has a final snapshot when it moves.
func TestAbandonedRecovery(t *testing.T) {
	const annotation = "backupentry.core.gardener.cloud/no-final-snapshot"
	for name, restoration := range map[string]*Restoration{"reconciled": nil, "restored": {}} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			entry := &corev1beta1.BackupEntry{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "e"}, Spec: corev1beta1.BackupEntrySpec{BucketName: "here", SeedName: new("own")},
			}
			existing := entry.DeepCopy()
			existing.Annotations = map[string]string{annotation: "true"}
			existing.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded}
			if err := clusters.Garden.Create(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			in := Inputs{Run: clusters.Run(), BackupEntry: entry, Restoration: restoration}
			if err := stagetest.RunTask(t.Context(), t, Tasks(in), "backup-entry"); err != nil {
				t.Fatal(err)
			}
			if err := clusters.Garden.Get(t.Context(), client.ObjectKeyFromObject(entry), existing); err != nil {
				t.Fatal(err)
			}
			if _, kept := existing.Annotations[annotation]; kept != (restoration != nil) {
				t.Errorf("annotations are %v", existing.Annotations)
			}
		})
	}
}

// TestLargeBackupsAreCopied is about a control plane that could never move: a snapshot of 10 GiB takes nine minutes at 20 MB/s, and a run that does not finish it has
// copied nothing of it.
func TestLargeBackupsAreCopied(t *testing.T) {
	const size, perSecond = 10 << 30, 20_000_000
	if left, needed := copyTimeout-finalSnapshotTimeout, size/perSecond*time.Second; left < needed {
		t.Errorf("%s are left for a snapshot, which needs %s", left, needed)
	}
}

// The backups are copied from the bucket of the former seed to the own one, and then nothing of the former is left.
func TestBackupsAreCopied(t *testing.T) {
	clusters := stagetest.New(t)
	entry := &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "e"}, Spec: corev1beta1.BackupEntrySpec{BucketName: "here", SeedName: new("own")},
	}
	source := entry.DeepCopy()
	source.Name, source.Spec.BucketName = "source-e", "there"
	moved := entry.DeepCopy()
	moved.Annotations = map[string]string{"backupentry.core.gardener.cloud/copied-from": "there", "backupentry.core.gardener.cloud/no-final-snapshot": "true"}
	moved.Spec.BucketName, moved.Status.LastOperation = "there", &corev1beta1.LastOperation{Type: "Migrate", State: "Succeeded"}
	secret := func(name, bucket string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: name}, Data: map[string][]byte{"bucketName": []byte(bucket)}}
	}
	inSeed := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "source-e"}}
	inSeed.Spec.Type = "Former"
	if err := errors.Join(
		clusters.Garden.Create(t.Context(), moved), clusters.Garden.Create(t.Context(), source.DeepCopy()), clusters.Seed.Create(t.Context(), inSeed),
		clusters.Seed.Create(t.Context(), secret("etcd-backup", "here")), clusters.Seed.Create(t.Context(), secret("source-etcd-backup", "there")),
		clusters.Seed.Create(t.Context(), &druidv1alpha1.EtcdCopyBackupsTask{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: stagetest.Name}}),
		clusters.Seed.Create(t.Context(), copyPod("failed", 1, "")), clusters.Seed.Create(t.Context(), copyPod("done", 0, "2026-11-28T05:16:29Z")),
	); err != nil {
		t.Fatal(err)
	}
	in := Inputs{Run: clusters.Run(), BackupEntry: entry, Restoration: &Restoration{SourceEntry: source, Copies: true, Provider: "Own"}}
	tasks := Tasks(in)
	if err := stagetest.RunTask(t.Context(), t, tasks, "backups-copied"); err != nil {
		t.Fatal(err)
	}
	task := &druidv1alpha1.EtcdCopyBackupsTask{}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: stagetest.Name}, task); err != nil {
		t.Fatal(err)
	}
	where := func(s druidv1alpha1.StoreSpec) string {
		return string(*s.Provider) + " " + *s.Container + " " + s.Prefix + " " + s.SecretRef.Name
	}
	if diff := gocmp.Diff([]string{"Former there e/etcd-main source-etcd-backup", "Own here e/etcd-main etcd-backup"},
		[]string{where(task.Spec.SourceStore), where(task.Spec.TargetStore)}); diff != "" {
		t.Errorf("stores (-want +got):\n%s", diff)
	}
	if wait := task.Spec.WaitForFinalSnapshot; wait == nil || !wait.Enabled {
		t.Error("the final snapshot is not waited for")
	}
	in.Restoration.NoFinalSnapshot = true
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "backups-copied"); err != nil {
		t.Fatal(err)
	}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(task), task); err != nil || task.Spec.WaitForFinalSnapshot.Enabled {
		t.Errorf("the final snapshot of a lost seed is waited for (%v)", err)
	}
	const asOf = "backupentry.core.gardener.cloud/restored-as-of"
	for range 2 {
		for _, id := range []string{"backups-copied-gone", "source-backup-entry-gone"} {
			if err := stagetest.RunTask(t.Context(), t, tasks, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := clusters.Garden.Get(t.Context(), client.ObjectKeyFromObject(moved), moved); err != nil || len(moved.Annotations) != 1 || moved.Annotations[asOf] != "2026-11-28T05:16:29Z" {
		t.Errorf("the annotations of the BackupEntry are %v (%v)", moved.Annotations, err)
	}
	for object, c := range map[client.Object]client.Client{task: clusters.Seed, source: clusters.Garden} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T still exists: %v", object, err)
		}
	}
}

// Several members cannot be restored at once, and one that was one of several has no quorum alone.
func TestFirstMembersOfRestoration(t *testing.T) {
	for name, tc := range map[string]struct {
		existing *int32
		want     int32
	}{
		"not deployed":                   {want: 1},
		"restored with one":              {existing: new(int32(1)), want: 1},
		"grown":                          {existing: new(int32(3)), want: 3},
		"scaled down by the hibernation": {existing: new(int32(0)), want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			etcd := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "etcd-main"}}
			if tc.existing != nil {
				etcd.Spec.Replicas = *tc.existing
				if err := clusters.Seed.Create(t.Context(), etcd.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			in := Inputs{Run: clusters.Run(), Replicas: 3, Restoration: &Restoration{}, Values: func(role component.Role, replicas int32) (component.Values, error) {
				return component.Values{Namespace: stagetest.Namespace, Role: role, Replicas: replicas}, nil
			}}
			if err := stagetest.RunTask(t.Context(), t, Tasks(in), MainTask); err != nil {
				t.Fatal(err)
			}
			if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(etcd), etcd); err != nil || etcd.Spec.Replicas != tc.want {
				t.Errorf("it has %d members, want %d: %v", etcd.Spec.Replicas, tc.want, err)
			}
		})
	}
}

// copyPod is a pod of the EtcdCopyBackupsTask that has ended.
func copyPod(name string, exitCode int32, message string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: stagetest.Namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": stagetest.Name},
	}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Message: message}}}}
	return pod
}

// A BackupEntry that was released by the former seed is restored in the own bucket.
func TestBackupEntryIsRestored(t *testing.T) {
	for name, tc := range map[string]struct {
		last     corev1beta1.LastOperationType
		restores bool
		// from is the former bucket, "there" if it is empty.
		from                    string
		bucket, request, copied string
	}{
		"released":                 {last: "Migrate", restores: true, bucket: "here", request: "restore", copied: "there"},
		"it comes back":            {last: "Migrate", restores: true, from: "here", bucket: "here", request: "restore"},
		"restored already":         {last: "Restore", restores: true, bucket: "there"},
		"it was always here":       {last: "Reconcile", bucket: "there"},
		"released, but no restore": {last: "Migrate", bucket: "there"},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			desired := &corev1beta1.BackupEntry{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "e"}, Spec: corev1beta1.BackupEntrySpec{BucketName: "here", SeedName: new("own")},
			}
			existing := desired.DeepCopy()
			existing.Spec = corev1beta1.BackupEntrySpec{BucketName: cmp.Or(tc.from, "there"), SeedName: new("own")}
			existing.Status.LastOperation = &corev1beta1.LastOperation{Type: tc.last, State: "Succeeded"}
			if err := clusters.Garden.Create(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			in := Inputs{Run: clusters.Run(), BackupEntry: desired}
			if tc.restores {
				in.Restoration = &Restoration{}
			}
			_ = stagetest.UntilIdle(t, in.backupEntry) // no controller answers the request
			if err := clusters.Garden.Get(t.Context(), client.ObjectKeyFromObject(desired), existing); err != nil {
				t.Fatal(err)
			}
			if copied := existing.Annotations["backupentry.core.gardener.cloud/copied-from"]; copied != tc.copied {
				t.Errorf("backups are copied from %q, want %q", copied, tc.copied)
			}
			if existing.Spec.BucketName != tc.bucket || existing.Annotations["gardener.cloud/operation"] != tc.request {
				t.Errorf("bucket is %q and the request %q", existing.Spec.BucketName, existing.Annotations["gardener.cloud/operation"])
			}
		})
	}
}
