package local

import (
	"crypto/sha256"
	_ "embed" // what a bastion runs
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
)

const (
	// nodeSSHPort is the port of SSH servers, of machines and of the Service of a bastion.
	nodeSSHPort int32 = 22
	// bastionPort is where the SSH server of a bastion listens: it is not root. In bastion_sshd.conf, too.
	bastionPort int32 = 2222
	// bastionUser is the ID of the user gardener in the container of the SSH server. In bastion_prepare.sh, too.
	bastionUser = 1000
	// bastionName is the label with the name of a bastion.
	bastionName = "bastion"
	// mostSourceRanges is how many networks of one IP family a bastion can be reached from. Each is a rule on each node of the cluster.
	mostSourceRanges = 64
	// bastionKeys is where the key of the user is, and that of the SSH server.
	bastionKeys = "/run/bastion"
)

var (
	//go:embed bastion_prepare.sh
	bastionScript string
	//go:embed bastion_sshd.conf
	bastionSSHD string
	// bastionAccounts is the file passwd of the SSH server's container. Its user has no shell.
	bastionAccounts = fmt.Sprintf("gardener:x:%d:%d::/nonexistent:/bin/false\n", bastionUser, bastionUser)
)

// bastionSelector selects the pod of a bastion.
func bastionSelector(name string) map[string]string {
	selector := map[string]string{bastionName: name}
	maps.Copy(selector, localv1alpha1.BastionLabels())
	return selector
}

// bastionObject is the name of the objects of a Bastion.
func bastionObject(bastion string) string { return serviceName("bastion-", bastion) }

// serviceName is the name of the objects of an extension resource. That of a Service must be short, and has no dots.
func serviceName(prefix, resource string) string {
	name := prefix + resource
	if len(validation.IsDNS1035Label(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(resource))
	return prefix + hex.EncodeToString(sum[:16])
}

// bastionService is the address of a bastion. The load balancer drops connections from other networks: it is the only one that sees from where they come, as
// it may hand them to any node. There are no node ports, for which there is no such rule.
func bastionService(namespace, name string, networks []string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: localv1alpha1.BastionLabels()},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: bastionSelector(name), LoadBalancerSourceRanges: networks,
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster, AllocateLoadBalancerNodePorts: new(false),
			Ports: []corev1.ServicePort{{Name: "ssh", Port: nodeSSHPort, TargetPort: intstr.FromInt32(bastionPort), Protocol: corev1.ProtocolTCP}},
		},
	}
}

// bastionSecret has what a bastion is made from.
func bastionSecret(namespace, name string, userData []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: localv1alpha1.BastionLabels()},
		Data: map[string][]byte{
			"prepare": []byte(bastionScript), "userdata": userData, "sshd_config": []byte(bastionSSHD), "passwd": []byte(bastionAccounts),
		},
	}
}

// bastionPod is the bastion. Its user is a tenant, and it runs in the cluster of the seed: the SSH server, which is what the tenant reaches, has no
// privileges, and gives no session. User data needs to be root, with the capabilities to create a user and to write files of it; it comes from the gardenlet, and
// has ended before there is an SSH server.
func bastionPod(namespace, name, image string) *corev1.Pod {
	const secret, keys, dir = "bastion", "keys", "/etc/bastion/"
	file := func(key, path string) corev1.VolumeMount {
		return corev1.VolumeMount{Name: secret, MountPath: path, SubPath: key, ReadOnly: true}
	}
	resources := func(memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse(memory)},
		}
	}
	confined := func(context corev1.SecurityContext, capabilities ...corev1.Capability) *corev1.SecurityContext {
		context.AllowPrivilegeEscalation = new(false)
		context.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: capabilities}
		context.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		return &context
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: bastionSelector(name)},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(5)), // connections end with it
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			Tolerations:                   []corev1.Toleration{shortly(corev1.TaintNodeNotReady), shortly(corev1.TaintNodeUnreachable)},
			InitContainers: []corev1.Container{{
				Name: "userdata", Image: image, Command: []string{"/bin/bash", dir + "prepare"},
				SecurityContext: confined(corev1.SecurityContext{RunAsUser: new(int64(0))}, "CHOWN", "DAC_OVERRIDE", "FOWNER"),
				Resources:       resources("64Mi"),
				VolumeMounts: []corev1.VolumeMount{
					file("prepare", dir+"prepare"), file("userdata", dir+"userdata"), {Name: keys, MountPath: bastionKeys},
				},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
			Containers: []corev1.Container{{
				Name: "sshd", Image: image, Command: []string{"/usr/sbin/sshd", "-D", "-e", "-f", dir + "sshd_config"},
				SecurityContext: confined(corev1.SecurityContext{
					RunAsUser: new(int64(bastionUser)), RunAsGroup: new(int64(bastionUser)), RunAsNonRoot: new(true), ReadOnlyRootFilesystem: new(true),
				}),
				Resources: resources("128Mi"),
				Ports:     []corev1.ContainerPort{{Name: "ssh", ContainerPort: bastionPort}},
				StartupProbe: &corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(bastionPort)}},
					PeriodSeconds: 1, FailureThreshold: 60,
				},
				VolumeMounts: []corev1.VolumeMount{
					file("sshd_config", dir+"sshd_config"), file("passwd", "/etc/passwd"), {Name: keys, MountPath: bastionKeys, ReadOnly: true},
				},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
			Volumes: []corev1.Volume{
				{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: new(int32(0o444))}}},
				{Name: keys, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
					Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(1<<20, resource.BinarySI),
				}}},
			},
		},
	}
}

// shortly has a pod deleted a minute after its node got a taint, and not five: a user waits.
func shortly(taint string) corev1.Toleration {
	return corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60))}
}

// ipFamilies are those that a bastion can have networks of.
var ipFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}

// noClient has, for each IP family, a network that has no clients.
var noClient = map[corev1.IPFamily]string{corev1.IPv4Protocol: "255.255.255.255/32", corev1.IPv6Protocol: "::/128"}

func familyOf(network netip.Prefix) corev1.IPFamily {
	if network.Addr().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// sourceRanges returns the networks from which a bastion can be reached: those of the ingress, without their exceptions. There is at least one of each IP
// family: a Service without a source range of its family would be open to everybody.
func sourceRanges(ingress []extensionsv1alpha1.BastionIngressPolicy) ([]string, error) {
	number := len(ingress)
	for _, policy := range ingress {
		number += len(policy.IPBlock.Except)
	}
	if number > mostSourceRanges { // to take exceptions out takes time with the square of their number
		return nil, field.TooMany(field.NewPath("spec", "ingress"), number, mostSourceRanges)
	}
	byFamily := map[corev1.IPFamily][]netip.Prefix{}
	for i, policy := range ingress {
		path := field.NewPath("spec", "ingress").Index(i).Child("ipBlock")
		network, err := networkOf(policy.IPBlock.CIDR, path.Child("cidr"))
		if err != nil {
			return nil, err
		}
		var excluded []netip.Prefix
		for j, except := range policy.IPBlock.Except {
			other, err := networkOf(except, path.Child("except").Index(j))
			if err != nil {
				return nil, err
			}
			excluded = append(excluded, other)
		}
		family := familyOf(network)
		parts, ok := without(byFamily[family], network, excluded)
		if byFamily[family] = parts; !ok {
			return nil, field.Forbidden(field.NewPath("spec", "ingress"),
				fmt.Sprintf("has more than %d networks of an IP family, without their exceptions: name fewer, or larger ones", mostSourceRanges))
		}
	}
	var ranges []string
	for _, family := range ipFamilies {
		if len(byFamily[family]) == 0 {
			ranges = append(ranges, noClient[family])
		}
		for _, network := range byFamily[family] {
			ranges = append(ranges, network.String())
		}
	}
	slices.Sort(ranges)
	return slices.Compact(ranges), nil
}

func networkOf(cidr string, path *field.Path) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(cidr)
	if err != nil || network.Addr().Is4In6() {
		return network, field.Invalid(path, cidr, "must be an IPv4 or IPv6 network such as 203.0.113.0/24")
	}
	return network.Masked(), nil
}

// without appends the parts of a network that are in none of the others, unless there are too many then.
func without(to []netip.Prefix, network netip.Prefix, others []netip.Prefix) ([]netip.Prefix, bool) {
	whole := true
	for _, other := range others {
		switch {
		case !other.Overlaps(network):
		case other.Bits() <= network.Bits():
			return to, true
		default:
			whole = false
		}
	}
	if whole {
		to = append(to, network)
		return to, len(to) <= mostSourceRanges
	}
	ok := false
	for _, half := range halves(network) {
		if to, ok = without(to, half, others); !ok {
			break
		}
	}
	return to, ok
}

// halves returns the two halves of a network that is not a single address.
func halves(network netip.Prefix) [2]netip.Prefix {
	bit := network.Bits()
	upper := network.Addr().AsSlice()
	upper[bit/8] |= 1 << (7 - bit%8)
	address, _ := netip.AddrFromSlice(upper) // as long as it was
	return [2]netip.Prefix{netip.PrefixFrom(network.Addr(), bit+1), netip.PrefixFrom(address, bit+1)}
}
