package extensions_test

import (
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/validation/extensions"
)

var (
	meta        = metav1.ObjectMeta{Name: "foo", Namespace: "shoot--foo--bar", ResourceVersion: "1"}
	cluster     = metav1.ObjectMeta{Name: "foo", ResourceVersion: "1"}
	defaultSpec = extensionsv1alpha1.DefaultSpec{Type: "local"}
	secretRef   = corev1.SecretReference{Name: "cloudprovider", Namespace: "shoot--foo--bar"}
)

// results lists errors as "type path", sorted.
func results(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, map[field.ErrorType]string{
			field.ErrorTypeRequired: "required", field.ErrorTypeInvalid: "invalid", field.ErrorTypeNotSupported: "unsupported",
			field.ErrorTypeDuplicate: "duplicate", field.ErrorTypeForbidden: "forbidden", field.ErrorTypeNotFound: "notfound",
			field.ErrorTypeTooMany: "toomany",
		}[err.Type]+" "+err.Field)
	}
	sort.Strings(out)
	return out
}

func bucket() *extensionsv1alpha1.BackupBucket {
	return &extensionsv1alpha1.BackupBucket{ObjectMeta: cluster, Spec: extensionsv1alpha1.BackupBucketSpec{DefaultSpec: defaultSpec, Region: "here", SecretRef: secretRef}}
}

func entry() *extensionsv1alpha1.BackupEntry {
	return &extensionsv1alpha1.BackupEntry{ObjectMeta: cluster, Spec: extensionsv1alpha1.BackupEntrySpec{DefaultSpec: defaultSpec, Region: "here", BucketName: "b", SecretRef: secretRef}}
}

func bastion() *extensionsv1alpha1.Bastion {
	return &extensionsv1alpha1.Bastion{ObjectMeta: meta, Spec: extensionsv1alpha1.BastionSpec{
		DefaultSpec: defaultSpec, UserData: []byte("echo"),
		Ingress: []extensionsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "1.2.3.4/32"}}},
	}}
}

func containerRuntime() *extensionsv1alpha1.ContainerRuntime {
	return &extensionsv1alpha1.ContainerRuntime{ObjectMeta: meta, Spec: extensionsv1alpha1.ContainerRuntimeSpec{
		DefaultSpec: defaultSpec, BinaryPath: "/var/bin", WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{Name: "pool"},
	}}
}

func controlPlane() *extensionsv1alpha1.ControlPlane {
	return &extensionsv1alpha1.ControlPlane{ObjectMeta: meta, Spec: extensionsv1alpha1.ControlPlaneSpec{DefaultSpec: defaultSpec, Region: "here", SecretRef: secretRef}}
}

func dnsRecord() *extensionsv1alpha1.DNSRecord {
	return &extensionsv1alpha1.DNSRecord{ObjectMeta: meta, Spec: extensionsv1alpha1.DNSRecordSpec{
		DefaultSpec: defaultSpec, SecretRef: secretRef, Name: "api.foo.example.com", RecordType: extensionsv1alpha1.DNSRecordTypeA, Values: []string{"1.2.3.4"},
	}}
}

func extension() *extensionsv1alpha1.Extension {
	return &extensionsv1alpha1.Extension{ObjectMeta: meta, Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: defaultSpec}}
}

func infrastructure() *extensionsv1alpha1.Infrastructure {
	return &extensionsv1alpha1.Infrastructure{ObjectMeta: meta, Spec: extensionsv1alpha1.InfrastructureSpec{DefaultSpec: defaultSpec, Region: "here", SecretRef: secretRef}}
}

func network() *extensionsv1alpha1.Network {
	return &extensionsv1alpha1.Network{ObjectMeta: meta, Spec: extensionsv1alpha1.NetworkSpec{DefaultSpec: defaultSpec, PodCIDR: "100.96.0.0/11", ServiceCIDR: "100.64.0.0/13"}}
}

func exposure() *extensionsv1alpha1.SelfHostedShootExposure {
	return &extensionsv1alpha1.SelfHostedShootExposure{ObjectMeta: meta, Spec: extensionsv1alpha1.SelfHostedShootExposureSpec{
		DefaultSpec: defaultSpec, Port: 443,
		Endpoints: []extensionsv1alpha1.ControlPlaneEndpoint{{NodeName: "n1", Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}}},
	}}
}

func osc() *extensionsv1alpha1.OperatingSystemConfig {
	return &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: meta, Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
		DefaultSpec: defaultSpec, Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
		CRIConfig: &extensionsv1alpha1.CRIConfig{
			Name: extensionsv1alpha1.CRINameContainerD,
			Containerd: &extensionsv1alpha1.ContainerdConfig{
				SandboxImage: "pause",
				Registries:   []extensionsv1alpha1.RegistryConfig{{Upstream: "docker.io", Hosts: []extensionsv1alpha1.RegistryHost{{URL: "https://mirror"}}}},
				Plugins:      []extensionsv1alpha1.PluginConfig{{Path: []string{"a"}}},
			},
		},
		Units: []extensionsv1alpha1.Unit{{Name: "a.service", FilePaths: []string{"/a"}}},
		Files: []extensionsv1alpha1.File{{Path: "/a", Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: "x"}}}},
	}}
}

func worker() *extensionsv1alpha1.Worker {
	return &extensionsv1alpha1.Worker{ObjectMeta: meta, Spec: extensionsv1alpha1.WorkerSpec{
		DefaultSpec: defaultSpec, Region: "here", SecretRef: secretRef,
		Pools: []extensionsv1alpha1.WorkerPool{{
			Name: "pool", MachineType: "small", Minimum: 1, Maximum: 2, MaxSurge: intstr.FromInt32(1),
			MachineImage:      &extensionsv1alpha1.MachineImage{Name: "linux", Version: "1.0.0"},
			UserDataSecretRef: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "user-data"}, Key: "data"},
		}},
	}}
}

func everyKind() map[string]extensionsv1alpha1.Object {
	return map[string]extensionsv1alpha1.Object{
		"BackupBucket": bucket(), "BackupEntry": entry(), "Bastion": bastion(), "ContainerRuntime": containerRuntime(), "ControlPlane": controlPlane(),
		"DNSRecord": dnsRecord(), "Extension": extension(), "Infrastructure": infrastructure(), "Network": network(), "OperatingSystemConfig": osc(),
		"SelfHostedShootExposure": exposure(), "Worker": worker(),
	}
}

func TestEveryKind(t *testing.T) {
	for kind, obj := range everyKind() {
		t.Run(kind, func(t *testing.T) {
			if errs := extensions.Validate(obj); len(errs) > 0 {
				t.Errorf("a valid object is refused: %v", errs.ToAggregate())
			}
			if errs := extensions.ValidateUpdate(obj, obj); len(errs) > 0 {
				t.Errorf("no change is refused: %v", errs.ToAggregate())
			}

			// The class may be spelt out, and no kind can change its type.
			changed := obj.DeepCopyObject().(extensionsv1alpha1.Object)
			spec := defaultSpecOf(changed)
			spec.Class = new(extensionsv1alpha1.ExtensionClassShoot)
			if errs := extensions.ValidateUpdate(changed, obj); len(errs) > 0 {
				t.Errorf("the default class is refused: %v", errs.ToAggregate())
			}
			spec.Class, spec.Type = new(extensionsv1alpha1.ExtensionClassGarden), "other"
			if diff := cmp.Diff([]string{"invalid spec.class", "invalid spec.type"}, results(extensions.ValidateUpdate(changed, obj))); diff != "" {
				t.Errorf("changed class and type (-want +got):\n%s", diff)
			}

			// While it is being deleted, only what is not the spec can change.
			changed.SetDeletionTimestamp(new(metav1.NewTime(time.Unix(0, 0))))
			if diff := cmp.Diff([]string{"forbidden spec"}, results(extensions.ValidateUpdate(changed, obj))); diff != "" {
				t.Errorf("changed while it is being deleted (-want +got):\n%s", diff)
			}
			deleting := obj.DeepCopyObject().(extensionsv1alpha1.Object)
			deleting.SetDeletionTimestamp(new(metav1.NewTime(time.Unix(0, 0))))
			deleting.SetAnnotations(map[string]string{"a": "b"})
			if errs := extensions.ValidateUpdate(deleting, obj); len(errs) > 0 {
				t.Errorf("an annotation is refused while it is being deleted: %v", errs.ToAggregate())
			}

			spec.Class, spec.Type = new(extensionsv1alpha1.ExtensionClass("cloud")), ""
			if diff := cmp.Diff([]string{"required spec.type", "unsupported spec.class"}, results(extensions.Validate(changed))); diff != "" {
				t.Errorf("no type, unknown class (-want +got):\n%s", diff)
			}
		})
	}
}

func defaultSpecOf(obj extensionsv1alpha1.Object) *extensionsv1alpha1.DefaultSpec {
	switch obj := obj.(type) {
	case *extensionsv1alpha1.BackupBucket:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.BackupEntry:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.Bastion:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.ContainerRuntime:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.ControlPlane:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.DNSRecord:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.Extension:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.Infrastructure:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.Network:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.OperatingSystemConfig:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.SelfHostedShootExposure:
		return &obj.Spec.DefaultSpec
	case *extensionsv1alpha1.Worker:
		return &obj.Spec.DefaultSpec
	}
	return nil
}

// change returns an object after a change.
func change[T any](obj *T, f func(*T)) *T {
	f(obj)
	return obj
}

func TestCreate(t *testing.T) {
	for name, tc := range map[string]struct {
		obj  extensionsv1alpha1.Object
		want []string
	}{
		"empty BackupBucket": {&extensionsv1alpha1.BackupBucket{}, []string{"required metadata.name", "required spec.region", "required spec.secretRef.name", "required spec.secretRef.namespace", "required spec.type"}},
		"empty BackupEntry":  {&extensionsv1alpha1.BackupEntry{}, []string{"required metadata.name", "required spec.bucketName", "required spec.region", "required spec.secretRef.name", "required spec.secretRef.namespace", "required spec.type"}},
		"empty Bastion":      {&extensionsv1alpha1.Bastion{}, []string{"required metadata.name", "required metadata.namespace", "required spec.ingress", "required spec.type", "required spec.userData"}},
		"empty Worker":       {&extensionsv1alpha1.Worker{}, []string{"required metadata.name", "required metadata.namespace", "required spec.region", "required spec.secretRef.name", "required spec.secretRef.namespace", "required spec.type"}},

		"Bastion with bad networks": {change(bastion(), func(b *extensionsv1alpha1.Bastion) {
			b.Spec.Ingress = []extensionsv1alpha1.BastionIngressPolicy{{}, {IPBlock: networkingv1.IPBlock{CIDR: "1.2.3.4"}}, {IPBlock: networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{"x"}}}}
		}), []string{"invalid spec.ingress[1].ipBlock.cidr", "invalid spec.ingress[2].ipBlock.except[0]", "required spec.ingress[0].ipBlock.cidr"}},

		"ContainerRuntime with a relative path": {change(containerRuntime(), func(c *extensionsv1alpha1.ContainerRuntime) {
			c.Spec.BinaryPath, c.Spec.WorkerPool.Name = "bin", ""
		}), []string{"invalid spec.binaryPath", "required spec.workerPool.name"}},

		"DNSRecord with a wildcard": {change(dnsRecord(), func(d *extensionsv1alpha1.DNSRecord) { d.Spec.Name = "*.example.com" }), nil},
		"DNSRecord for a challenge": {change(dnsRecord(), func(d *extensionsv1alpha1.DNSRecord) {
			d.Spec.Name, d.Spec.RecordType, d.Spec.Values = "_acme-challenge.example.com", "TXT", []string{"anything goes"}
		}), nil},
		"DNSRecord with bad values": {change(dnsRecord(), func(d *extensionsv1alpha1.DNSRecord) {
			d.Spec.Values, d.Spec.TTL, d.Spec.Region, d.Spec.Zone = []string{"::1", "1.2.3.4"}, new(int64(0)), new(""), new("")
		}), []string{"invalid spec.ttl", "invalid spec.values[0]", "required spec.region", "required spec.zone"}},
		"DNSRecord of type AAAA": {change(dnsRecord(), func(d *extensionsv1alpha1.DNSRecord) {
			d.Spec.RecordType, d.Spec.Values = "AAAA", []string{"::1", "1.2.3.4", "fe80::1%eth0"}
		}), []string{"invalid spec.values[1]", "invalid spec.values[2]"}},
		"DNSRecord of type CNAME": {change(dnsRecord(), func(d *extensionsv1alpha1.DNSRecord) {
			d.Spec.RecordType, d.Spec.Values = "CNAME", []string{"a.example.com", "B!"}
		}), []string{"invalid spec.values[1]", "toomany spec.values"}},
		"DNSRecord of no type": {change(dnsRecord(), func(d *extensionsv1alpha1.DNSRecord) {
			d.Spec.RecordType, d.Spec.Values, d.Spec.Name = "MX", nil, ""
		}), []string{"required spec.name", "required spec.values", "unsupported spec.recordType"}},

		"Network with overlap": {change(network(), func(n *extensionsv1alpha1.Network) { n.Spec.ServiceCIDR = "100.100.0.0/16" }), []string{"invalid spec.serviceCIDR"}},
		"Network without networks": {change(network(), func(n *extensionsv1alpha1.Network) {
			n.Spec.PodCIDR, n.Spec.ServiceCIDR, n.Spec.IPFamilies = "", "x", []extensionsv1alpha1.IPFamily{"IPv4", "IPv4", "IPv5"}
		}), []string{"duplicate spec.ipFamilies[1]", "invalid spec.serviceCIDR", "required spec.podCIDR", "unsupported spec.ipFamilies[2]"}},

		"SelfHostedShootExposure without anything": {change(exposure(), func(e *extensionsv1alpha1.SelfHostedShootExposure) {
			e.Spec.Port, e.Spec.Endpoints, e.Spec.CredentialsRef = 0, nil, &corev1.ObjectReference{Name: "x"}
		}), []string{"invalid spec.port", "required spec.credentialsRef.apiVersion", "required spec.credentialsRef.kind", "required spec.credentialsRef.namespace", "required spec.endpoints"}},
		"SelfHostedShootExposure with bad endpoints": {change(exposure(), func(e *extensionsv1alpha1.SelfHostedShootExposure) {
			e.Spec.Endpoints = []extensionsv1alpha1.ControlPlaneEndpoint{{NodeName: "a"}, {NodeName: "a", Addresses: []corev1.NodeAddress{{}}}}
		}), []string{"duplicate spec.endpoints[1].nodeName", "required spec.endpoints[0].addresses", "required spec.endpoints[1].addresses[0].address", "required spec.endpoints[1].addresses[0].type"}},

		"OperatingSystemConfig with bad units": {change(osc(), func(o *extensionsv1alpha1.OperatingSystemConfig) {
			o.Spec.Units = []extensionsv1alpha1.Unit{
				{Name: "a", Command: new(extensionsv1alpha1.UnitCommand("kill")), FilePaths: []string{"/nowhere"}},
				{Name: "a", DropIns: []extensionsv1alpha1.DropIn{{Name: "x", Content: "y"}, {Name: "x"}}},
			}
		}), []string{"duplicate spec.units[1].dropIns[1].name", "duplicate spec.units[1].name", "notfound spec.units[0].filePaths[0]", "required spec.units[1].dropIns[1].content", "unsupported spec.units[0].command"}},
		"OperatingSystemConfig with bad files": {change(osc(), func(o *extensionsv1alpha1.OperatingSystemConfig) {
			o.Spec.Files = append(o.Spec.Files,
				extensionsv1alpha1.File{Path: "/a", Permissions: new(uint32(0o10000))},
				extensionsv1alpha1.File{Path: "/a", HostName: new("n1"), Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{}}},
				extensionsv1alpha1.File{Path: "b", Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Encoding: "gzip", Data: "x"}, SecretRef: &extensionsv1alpha1.FileContentSecretRef{}}},
			)
		}), []string{
			"duplicate spec.files[1].path", "invalid spec.files[1].permissions", "invalid spec.files[3].path", "required spec.files[1].content",
			"required spec.files[2].content.imageRef.filePathInImage", "required spec.files[2].content.imageRef.image", "required spec.files[3].content",
			"required spec.files[3].content.secretRef.dataKey", "required spec.files[3].content.secretRef.name", "unsupported spec.files[3].content.inline.encoding",
		}},
		"OperatingSystemConfig with a bad container runtime": {change(osc(), func(o *extensionsv1alpha1.OperatingSystemConfig) {
			o.Spec.Purpose = "destroy"
			cri := o.Spec.CRIConfig
			cri.Name, cri.CgroupDriver, cri.Containerd.SandboxImage = "docker", new(extensionsv1alpha1.CgroupDriverName("x")), ""
			cri.Containerd.Registries[0].Server = new("docker.io")
			cri.Containerd.Registries[0].Hosts = []extensionsv1alpha1.RegistryHost{{URL: "ftp://x", Capabilities: []extensionsv1alpha1.RegistryCapability{"read"}, CACerts: []string{"a"}}}
			cri.Containerd.Plugins[0].Op, cri.Containerd.Plugins[0].Path = new(extensionsv1alpha1.PluginPathOperation("move")), nil
		}), []string{
			"invalid spec.criConfig.containerd.registries[0].hosts[0].caCerts[0]", "invalid spec.criConfig.containerd.registries[0].hosts[0].url",
			"invalid spec.criConfig.containerd.registries[0].server", "required spec.criConfig.containerd.plugins[0].path",
			"required spec.criConfig.containerd.sandboxImage", "unsupported spec.criConfig.cgroupDriver", "unsupported spec.criConfig.containerd.plugins[0].op",
			"unsupported spec.criConfig.containerd.registries[0].hosts[0].capabilities[0]", "unsupported spec.criConfig.name", "unsupported spec.purpose",
		}},

		"Worker with an empty pool": {change(worker(), func(w *extensionsv1alpha1.Worker) {
			w.Spec.Pools = append(w.Spec.Pools, extensionsv1alpha1.WorkerPool{})
		}), []string{
			"invalid spec.pools[1].maxUnavailable", "required spec.pools[1].machineType", "required spec.pools[1].name", "required spec.pools[1].userDataSecretRef.key", "required spec.pools[1].userDataSecretRef.name",
		}},
		"Worker with bad sizes": {change(worker(), func(w *extensionsv1alpha1.Worker) {
			p := &w.Spec.Pools[0]
			p.Minimum, p.Maximum, p.MaxSurge, p.MaxUnavailable = 5, 2, intstr.FromString("many"), intstr.FromString("120%")
		}), []string{"invalid spec.pools[0].maxSurge", "invalid spec.pools[0].maxUnavailable", "invalid spec.pools[0].minimum"}},
		"Worker with percentages": {change(worker(), func(w *extensionsv1alpha1.Worker) {
			w.Spec.Pools[0].MaxSurge, w.Spec.Pools[0].MaxUnavailable = intstr.FromString("0%"), intstr.FromString("25%")
		}), nil},
		"Worker with bad disks and zones": {change(worker(), func(w *extensionsv1alpha1.Worker) {
			p := &w.Spec.Pools[0]
			p.Volume = &extensionsv1alpha1.Volume{Size: "big"}
			p.DataVolumes = []extensionsv1alpha1.DataVolume{{Name: "a", Size: "1Gi"}, {Name: "a", Size: ""}}
			p.KubeletDataVolumeName = new("b")
			p.Zones = []string{"a", "", "a"}
			p.UpdateStrategy = new(corev1beta1.MachineUpdateStrategy("Never"))
			p.ClusterAutoscaler = &extensionsv1alpha1.ClusterAutoscalerOptions{ScaleDownUtilizationThreshold: new("1.5"), ScaleDownGPUUtilizationThreshold: new("NaN")}
			p.Taints = []corev1.Taint{{Key: "a b", Effect: "Never"}}
			p.Labels = map[string]string{"a b": "c"}
		}), []string{
			"duplicate spec.pools[0].dataVolumes[1].name", "duplicate spec.pools[0].zones[2]", "invalid spec.pools[0].clusterAutoscaler.scaleDownGpuUtilizationThreshold",
			"invalid spec.pools[0].clusterAutoscaler.scaleDownUtilizationThreshold", "invalid spec.pools[0].labels", "invalid spec.pools[0].taints[0].key",
			"invalid spec.pools[0].volume.size", "notfound spec.pools[0].kubeletDataVolumeName", "required spec.pools[0].dataVolumes[1].size",
			"required spec.pools[0].zones[1]", "unsupported spec.pools[0].taints[0].effect", "unsupported spec.pools[0].updateStrategy",
		}},
		"Worker with two pools of a name": {change(worker(), func(w *extensionsv1alpha1.Worker) { w.Spec.Pools = append(w.Spec.Pools, w.Spec.Pools[0]) }), []string{"duplicate spec.pools[1].name"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, results(extensions.Validate(tc.obj))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		obj, old extensionsv1alpha1.Object
		want     []string
	}{
		"region of a BackupBucket":   {change(bucket(), func(b *extensionsv1alpha1.BackupBucket) { b.Spec.Region = "there" }), bucket(), []string{"invalid spec.region"}},
		"bucket of a BackupEntry":    {change(entry(), func(e *extensionsv1alpha1.BackupEntry) { e.Spec.BucketName = "c" }), entry(), nil},
		"region of a BackupEntry":    {change(entry(), func(e *extensionsv1alpha1.BackupEntry) { e.Spec.Region = "there" }), entry(), []string{"invalid spec.region"}},
		"user data of a Bastion":     {change(bastion(), func(b *extensionsv1alpha1.Bastion) { b.Spec.UserData = []byte("x") }), bastion(), []string{"forbidden spec.userData"}},
		"pool of a ContainerRuntime": {change(containerRuntime(), func(c *extensionsv1alpha1.ContainerRuntime) { c.Spec.WorkerPool.Name = "x" }), containerRuntime(), []string{"invalid spec.workerPool.name"}},
		"region of a ControlPlane":   {change(controlPlane(), func(c *extensionsv1alpha1.ControlPlane) { c.Spec.Region = "there" }), controlPlane(), []string{"invalid spec.region"}},
		"values of a DNSRecord":      {change(dnsRecord(), func(d *extensionsv1alpha1.DNSRecord) { d.Spec.Values = []string{"4.3.2.1"} }), dnsRecord(), nil},
		"name and type of a DNSRecord": {
			change(dnsRecord(), func(d *extensionsv1alpha1.DNSRecord) { d.Spec.Name, d.Spec.RecordType = "x.example.com", "TXT" }), dnsRecord(),
			[]string{"invalid spec.name", "invalid spec.recordType"},
		},
		"region of an Infrastructure": {change(infrastructure(), func(i *extensionsv1alpha1.Infrastructure) { i.Spec.Region = "there" }), infrastructure(), []string{"invalid spec.region"}},
		"networks of a Network": {
			change(network(), func(n *extensionsv1alpha1.Network) { n.Spec.PodCIDR, n.Spec.ServiceCIDR = "10.0.0.0/16", "10.1.0.0/16" }), network(),
			[]string{"invalid spec.podCIDR", "invalid spec.serviceCIDR"},
		},
		"an IP family is added":    {change(network(), func(n *extensionsv1alpha1.Network) { n.Spec.IPFamilies = []extensionsv1alpha1.IPFamily{"IPv4", "IPv6"} }), network(), nil},
		"an IP family is replaced": {change(network(), func(n *extensionsv1alpha1.Network) { n.Spec.IPFamilies = []extensionsv1alpha1.IPFamily{"IPv6"} }), network(), []string{"forbidden spec.ipFamilies"}},
		"purpose of an OperatingSystemConfig": {
			change(osc(), func(o *extensionsv1alpha1.OperatingSystemConfig) { o.Spec.Purpose = "provision" }), osc(),
			[]string{"invalid spec.purpose"},
		},
		"region of a Worker": {change(worker(), func(w *extensionsv1alpha1.Worker) { w.Spec.Region = "there" }), worker(), []string{"invalid spec.region"}},
		"pools of a Worker":  {change(worker(), func(w *extensionsv1alpha1.Worker) { w.Spec.Pools = nil }), worker(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, results(extensions.ValidateUpdate(tc.obj, tc.old))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOperatingSystemConfigStatus(t *testing.T) {
	o := osc()
	o.Status.ExtensionUnits = []extensionsv1alpha1.Unit{{Name: "b", FilePaths: []string{"/a", "/b", "/c"}}}
	o.Status.ExtensionFiles = []extensionsv1alpha1.File{{Path: "/b", Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: "x"}}}}
	o.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{SecretRef: corev1.SecretReference{Name: "a"}}
	o.Status.InPlaceUpdates = &extensionsv1alpha1.InPlaceUpdatesStatus{OSUpdate: &extensionsv1alpha1.OSUpdate{}}
	want := []string{"notfound status.extensionUnits[0].filePaths[2]", "required status.cloudConfig.secretRef.namespace", "required status.inPlaceUpdates.osUpdate.command"}
	if diff := cmp.Diff(want, results(extensions.ValidateOperatingSystemConfigStatus(o))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCluster(t *testing.T) {
	c := &extensionsv1alpha1.Cluster{ObjectMeta: cluster}
	if diff := cmp.Diff([]string{"required spec.cloudProfile", "required spec.shoot"}, results(extensions.ValidateCluster(c))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Spec.CloudProfile, c.Spec.Shoot = runtime.RawExtension{Raw: []byte("{}")}, runtime.RawExtension{Raw: []byte("{}")}
	if errs := extensions.ValidateCluster(c); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}
