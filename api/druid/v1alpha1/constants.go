package v1alpha1

const (
	// EtcdFinalizerName keeps Etcds until their objects are gone.
	EtcdFinalizerName = "druid.gardener.cloud/etcd-druid"
	// EtcdOpsTaskFinalizerName keeps EtcdOpsTasks until they are cleaned up.
	EtcdOpsTaskFinalizerName = "druid.gardener.cloud/etcd-ops-task"
)

// Annotations of an Etcd.
const (
	// SuspendEtcdSpecReconcileAnnotation keeps etcd-druid from acting on the spec while it is there.
	SuspendEtcdSpecReconcileAnnotation = "druid.gardener.cloud/suspend-etcd-spec-reconcile"
	// DisableEtcdComponentProtectionAnnotation lets others change the objects of the Etcd while it is there.
	DisableEtcdComponentProtectionAnnotation = "druid.gardener.cloud/disable-etcd-component-protection"
	// DruidOperationAnnotation requests an operation of etcd-druid. It removes the annotation when it starts.
	DruidOperationAnnotation = "druid.gardener.cloud/operation"
	// GardenerOperationAnnotation does the same under the name that other resources have it by.
	GardenerOperationAnnotation = "gardener.cloud/operation"
	// DruidOperationReconcile is the operation that brings the objects to the spec.
	DruidOperationReconcile = "reconcile"
	// AllowUnhealthyPodEviction on an Etcd lets pods that are not ready be evicted in spite of the disruption budget.
	AllowUnhealthyPodEviction = "resources.druid.gardener.cloud/allow-unhealthy-pod-eviction"
)

// Labels of the objects of an Etcd.
const (
	// LabelAppNameKey is the name of the object's component, such as that of a Service.
	LabelAppNameKey = "app.kubernetes.io/name"
	// LabelManagedByKey is always LabelManagedByValue.
	LabelManagedByKey = "app.kubernetes.io/managed-by"
	// LabelManagedByValue is the value of LabelManagedByKey.
	LabelManagedByValue = "etcd-druid"
	// LabelPartOfKey is the name of the Etcd.
	LabelPartOfKey = "app.kubernetes.io/part-of"
	// LabelComponentKey says what the object is to the Etcd.
	LabelComponentKey = "app.kubernetes.io/component"
	// ComponentSnapshotLease is a value of LabelComponentKey: of Leases that are renewed with each snapshot.
	ComponentSnapshotLease = "etcd-snapshot-lease"
)
