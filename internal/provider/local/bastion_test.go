package local

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/test/golden"
)

func policyOf(cidr string, except ...string) extensionsv1alpha1.BastionIngressPolicy {
	return extensionsv1alpha1.BastionIngressPolicy{IPBlock: networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

func newBastion(ingress ...extensionsv1alpha1.BastionIngressPolicy) *extensionsv1alpha1.Bastion {
	return &extensionsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cli-a"},
		Spec: extensionsv1alpha1.BastionSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: Type}, UserData: []byte("#!/bin/bash"), Ingress: ingress,
		},
	}
}

func bastionsIn(seed client.Client, others ...client.Client) *bastions {
	return &bastions{placesOf(seed, others...), testingclock.NewFakePassiveClock(time.Unix(1000, 0))}
}

// ofBastion is the Cluster of a shoot with a seed and machine images.
func ofBastion(t *testing.T) *extension.Cluster {
	t.Helper()
	cluster := newCluster(t)
	cluster.Seed = ofSeed().Seed
	cluster.CloudProfile.Spec.MachineImages = []corev1beta1.MachineImage{
		{Name: "other", Versions: []corev1beta1.MachineImageVersion{{ExpirableVersion: corev1beta1.ExpirableVersion{Version: "3.0.0"}}}},
		{Name: "local", Versions: []corev1beta1.MachineImageVersion{
			{ExpirableVersion: corev1beta1.ExpirableVersion{Version: "1.0.0"}},
			{ExpirableVersion: corev1beta1.ExpirableVersion{Version: "2.0.0"}},
			{ExpirableVersion: corev1beta1.ExpirableVersion{Version: "3.0.0"}},
		}},
	}
	return cluster
}

func TestBastionObjects(t *testing.T) {
	const in, name = "infra-shoot--dev--crazy", "bastion-cli-a"
	golden.Objects(t, "bastion.yaml", []client.Object{bastionService(in, name, []string{"203.0.113.0/24", "::/128"}), bastionPod(in, name, "registry.example/machine:v2")})
}

func TestBastionObject(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"cli-a", "cli-a.b", "cli-a-b", strings.Repeat("a", 55), strings.Repeat("a", 56), strings.Repeat("a", 63)} {
		object := bastionObject(name)
		if problems := validation.IsDNS1035Label(object); len(problems) > 0 || seen[object] != "" {
			t.Errorf("the objects of %q are named %q, as those of %q: %v", name, object, seen[object], problems)
		}
		seen[object] = name
	}
	if bastionObject("cli-a") != "bastion-cli-a" {
		t.Errorf("the objects of cli-a are named %q", bastionObject("cli-a"))
	}
}

func TestSourceRanges(t *testing.T) {
	for name, tc := range map[string]struct {
		ingress []extensionsv1alpha1.BastionIngressPolicy
		want    []string
		refused string
	}{
		// Without one of the Service's family, a load balancer is open to everybody.
		"only IPv4":         {ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("203.0.113.7/32")}, want: []string{"203.0.113.7/32", "::/128"}},
		"only IPv6":         {ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("2001:db8::/32")}, want: []string{"2001:db8::/32", "255.255.255.255/32"}},
		"nothing":           {want: []string{"255.255.255.255/32", "::/128"}},
		"bits of a host":    {ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("203.0.113.7/24")}, want: []string{"203.0.113.0/24", "::/128"}},
		"the same twice":    {ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("10.0.0.0/8"), policyOf("10.0.0.0/8")}, want: []string{"10.0.0.0/8", "::/128"}},
		"another exception": {ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("10.0.0.0/8", "11.0.0.0/8", "::/1")}, want: []string{"10.0.0.0/8", "::/128"}},
		"an exception": {
			ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("10.0.0.0/8", "10.32.0.0/11")},
			want:    []string{"10.0.0.0/11", "10.128.0.0/9", "10.64.0.0/10", "::/128"},
		},
		"exceptions that are everything": {
			ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9")}, want: []string{"255.255.255.255/32", "::/128"},
		},
		"no network": {ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("10.0.0.0/8"), policyOf("10.0.0.0")}, refused: "spec.ingress[1].ipBlock.cidr: Invalid value"},
		"no exception": {
			ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("10.0.0.0/8", "10.0.0.0/9", "x")}, refused: "spec.ingress[0].ipBlock.except[1]: Invalid value",
		},
		"an IPv4 network in IPv6 form": {ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("::ffff:10.0.0.0/104")}, refused: "spec.ingress[0].ipBlock.cidr"},
		"more exceptions than can be computed with": {
			ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("0.0.0.0/0", slices.Repeat([]string{"10.0.0.0/16"}, 64)...)}, refused: "spec.ingress: Too many: 65",
		},
		"a single address of all": {
			ingress: []extensionsv1alpha1.BastionIngressPolicy{policyOf("::/0", "2001:db8::1/128")}, refused: "spec.ingress: Forbidden: has more than 64 networks",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sourceRanges(tc.ingress)
			if tc.refused != "" || err != nil {
				if err == nil || tc.refused == "" || !strings.HasPrefix(err.Error(), tc.refused) {
					t.Errorf("sourceRanges() = %v, want %q", err, tc.refused)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sourceRanges() (-want +got):\n%s", diff)
			}
		})
	}
}

// What is left of a network has each of its addresses but those of exceptions.
func FuzzSourceRanges(f *testing.F) {
	f.Add([]byte{10, 0, 0, 0, 8, 10, 32, 0, 0, 11, 10, 64, 3, 1}, []byte{10, 64, 3, 1})
	f.Fuzz(func(t *testing.T, networks, address []byte) {
		var all []netip.Prefix
		for ; len(networks) >= 5 && len(all) < 4; networks = networks[5:] {
			all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte(networks)), int(networks[4]%33)).Masked())
		}
		if len(all) == 0 || len(address) != 4 {
			return
		}
		parts, ok := without(nil, all[0], all[1:])
		if !ok {
			return
		}
		contains := func(networks []netip.Prefix) bool {
			for _, network := range networks {
				if network.Contains(netip.AddrFrom4([4]byte(address))) {
					return true
				}
			}
			return false
		}
		if want := contains(all[:1]) && !contains(all[1:]); contains(parts) != want {
			t.Errorf("%v without %v are %v: %v is there: %v", all[0], all[1:], parts, address, !want)
		}
	})
}

func TestBastionImage(t *testing.T) {
	named := func(name string, version *string) *corev1beta1.Bastion {
		return &corev1beta1.Bastion{MachineImage: &corev1beta1.BastionMachineImage{Name: name, Version: version}}
	}
	for name, tc := range map[string]struct {
		bastion *corev1beta1.Bastion
		want    string
	}{
		"the newest that exists": {want: "registry.example/machine:v2"},
		"only a machine type":    {bastion: &corev1beta1.Bastion{MachineType: &corev1beta1.BastionMachineType{Name: "small"}}, want: "registry.example/machine:v2"},
		"an image":               {bastion: named("local", nil), want: "registry.example/machine:v2"},
		"a version":              {bastion: named("local", new("1.0.0")), want: "registry.example/machine:v1"},
		"one without an image":   {bastion: named("local", new("3.0.0"))},
		"of another provider":    {bastion: named("other", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			profile := ofBastion(t).CloudProfile
			profile.Spec.Bastion = tc.bastion
			got, err := bastionImage(profile, time.Unix(1000, 0))
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("bastionImage() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// setStatus changes the status of the pod and of the Service of a bastion.
func setStatus(t *testing.T, c client.Client, change func(*corev1.Pod, *corev1.Service)) {
	t.Helper()
	key := client.ObjectKey{Namespace: "infra-shoot--dev--crazy", Name: "bastion-cli-a"}
	pod, service := &corev1.Pod{}, &corev1.Service{}
	for _, object := range []client.Object{pod, service} {
		if err := c.Get(t.Context(), key, object); err != nil {
			t.Fatal(err)
		}
	}
	change(pod, service)
	for _, object := range []client.Object{pod, service} {
		if err := c.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func ready(pod *corev1.Pod, service *corev1.Service) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7", IPMode: new(corev1.LoadBalancerIPModeVIP)}}
}

// A bastion is beside the machines, wherever they are, is ready when it accepts connections, and leaves nothing.
func TestBastion(t *testing.T) {
	for name, kubeconfig := range map[string]string{"in the seed": "", "in another cluster": "other"} {
		t.Run(name, func(t *testing.T) {
			seed, other := newSeed(t, kubeconfig), newOther(t, "other")
			in := seed
			if kubeconfig != "" {
				in = other
			}
			a, bastion, cluster := bastionsIn(seed, seed, other), newBastion(policyOf("203.0.113.7/32")), ofBastion(t)
			waits(t, a.Reconcile(t.Context(), bastion, cluster), "The Shoot has no infrastructure yet")
			infrastructure := newInfrastructure()
			if err := infrastructuresIn(seed, seed, other).Reconcile(t.Context(), infrastructure, cluster); err != nil {
				t.Fatal(err)
			}
			if err := seed.Create(t.Context(), infrastructure); err != nil {
				t.Fatal(err)
			}
			waits(t, a.Reconcile(t.Context(), bastion, cluster), "The bastion is starting")
			setStatus(t, in, func(pod *corev1.Pod, _ *corev1.Service) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
					Name: "userdata", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}},
				}}
			})
			waits(t, a.Reconcile(t.Context(), bastion, cluster), `The bastion is starting: container "userdata": CrashLoopBackOff`)
			setStatus(t, in, func(pod *corev1.Pod, service *corev1.Service) {
				ready(pod, service)
				service.Status = corev1.ServiceStatus{}
			})
			waits(t, a.Reconcile(t.Context(), bastion, cluster), "The load balancer of the bastion has no address yet")
			setStatus(t, in, ready)
			if err := a.Reconcile(t.Context(), bastion, cluster); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&corev1.LoadBalancerIngress{IP: "192.0.2.7"}, bastion.Status.Ingress); diff != "" {
				t.Errorf("status.ingress (-want +got):\n%s", diff)
			}
			// Its node was shut down.
			setStatus(t, in, func(pod *corev1.Pod, _ *corev1.Service) { pod.Status.Phase = corev1.PodFailed })
			waits(t, a.Reconcile(t.Context(), bastion, cluster), "The pod of the bastion has ended, and is replaced")
			waits(t, a.Reconcile(t.Context(), bastion, cluster), "The bastion is starting")

			if err := a.Delete(t.Context(), bastion, cluster); err != nil {
				t.Error(err)
			}
			for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ServiceList{}, &corev1.SecretList{}, &networkingv1.NetworkPolicyList{}} {
				err := in.List(t.Context(), list, client.InNamespace("infra-shoot--dev--crazy"), client.MatchingLabels{"app": "bastion"})
				if count := listLength(list); err != nil || count > 0 {
					t.Errorf("%T: %d are left (%v)", list, count, err)
				}
			}
		})
	}
}

// What runs on a lost node is not ready, and its kubelet does not delete it: the pod is replaced, and does not keep the bastion from being deleted.
func TestBastionOnLostNode(t *testing.T) {
	forced := 0
	seed := interceptor.NewClient(newSeed(t, "").(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // it is a fake one
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			o := (&client.DeleteOptions{}).ApplyOptions(options)
			if ptr.Deref(o.GracePeriodSeconds, 5) > 0 {
				return c.Delete(ctx, object, options...)
			}
			forced++
			object.SetFinalizers(nil) // stands for the kubelet
			return c.Update(ctx, object)
		},
	})
	clock := testingclock.NewFakePassiveClock(time.Now())
	a, bastion, cluster := &bastions{placesOf(seed), clock}, newBastion(policyOf("203.0.113.7/32")), ofBastion(t)
	infrastructure := newInfrastructure()
	if err := infrastructuresIn(seed, seed).Reconcile(t.Context(), infrastructure, cluster); err != nil {
		t.Fatal(err)
	}
	if err := seed.Create(t.Context(), infrastructure); err != nil {
		t.Fatal(err)
	}
	repair := func(want bool, when string) {
		t.Helper()
		if got, err := a.Repair(t.Context(), bastion); got != want || err != nil {
			t.Errorf("%s: Repair() = %v, %v", when, got, err)
		}
	}
	key := client.ObjectKey{Namespace: "infra-shoot--dev--crazy", Name: "bastion-cli-a"}
	start := func() {
		t.Helper()
		waits(t, a.Reconcile(t.Context(), bastion, cluster), "The bastion is starting")
		pod := &corev1.Pod{}
		if err := seed.Get(t.Context(), key, pod); err != nil {
			t.Fatal(err)
		}
		pod.Finalizers, pod.Spec.NodeName = []string{"example.com/kubelet"}, "n1"
		if err := seed.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		setStatus(t, seed, func(pod *corev1.Pod, service *corev1.Service) {
			ready(pod, service)
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sshd", Ready: true}}
		})
		if err := a.Reconcile(t.Context(), bastion, cluster); err != nil {
			t.Fatal(err)
		}
		repair(false, "ready")
	}
	start()
	setStatus(t, seed, func(pod *corev1.Pod, _ *corev1.Service) { pod.Status.Conditions[0].Status = corev1.ConditionFalse })
	repair(true, "not ready")
	waits(t, a.Reconcile(t.Context(), bastion, cluster), `Node "n1" of the bastion does not report any more`)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := seed.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	repair(true, "being deleted")
	waits(t, a.Reconcile(t.Context(), bastion, cluster), "A former pod of the bastion is being deleted")
	clock.SetTime(time.Now().Add(time.Minute))
	waits(t, a.Reconcile(t.Context(), bastion, cluster), `Node "n1" of the bastion is lost, and its pod is deleted`)
	repair(true, "gone")
	start()

	clock.SetTime(time.Now())
	waits(t, a.Delete(t.Context(), bastion, cluster), "The bastion is being deleted")
	clock.SetTime(time.Now().Add(time.Minute))
	waits(t, a.Delete(t.Context(), bastion, cluster), `Node "n1" of the bastion is lost, and its pod is deleted`)
	if err := a.Delete(t.Context(), bastion, cluster); err != nil || forced != 2 {
		t.Errorf("Delete() = %v, and %d pods were deleted without a grace period", err, forced)
	}
}

func listLength(list client.ObjectList) int {
	switch list := list.(type) {
	case *corev1.PodList:
		return len(list.Items)
	case *corev1.ServiceList:
		return len(list.Items)
	case *corev1.SecretList:
		return len(list.Items)
	case *networkingv1.NetworkPolicyList:
		return len(list.Items)
	}
	return -1
}

// What the user of a Bastion, or the operator, has to change is said so.
func TestInvalidBastion(t *testing.T) {
	seed := newSeed(t, "")
	without := ofBastion(t)
	without.CloudProfile.Spec.MachineImages = nil
	for name, tc := range map[string]struct {
		bastion *extensionsv1alpha1.Bastion
		cluster *extension.Cluster
	}{
		"a network":         {newBastion(policyOf("here")), ofBastion(t)},
		"no machine images": {newBastion(policyOf("203.0.113.7/32")), without},
	} {
		if err := bastionsIn(seed).Reconcile(t.Context(), tc.bastion, tc.cluster); !isConfigurationProblem(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A bastion is deleted when its Shoot has no infrastructure any more, and by force also if the other cluster is not found.
func TestDeletionOfBastion(t *testing.T) {
	seed := newSeed(t, "")
	if err := bastionsIn(seed).Delete(t.Context(), newBastion(), nil); err != nil {
		t.Errorf("without an infrastructure: %v", err)
	}
	if err := seed.Create(t.Context(), withState(`{"place":{"uid":"other","server":"https://other.example"}}`)); err != nil {
		t.Fatal(err)
	}
	if err := bastionsIn(seed).Delete(t.Context(), newBastion(), nil); !isConfigurationProblem(err) {
		t.Errorf("without the other cluster: %v", err)
	}
	if err := bastionsIn(seed).ForceDelete(t.Context(), newBastion(), nil); err != nil {
		t.Errorf("by force, without the other cluster: %v", err)
	}
	if err := seed.Get(t.Context(), client.ObjectKey{Name: "infra-shoot--dev--crazy"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is %v", err)
	}
}

// The SSH server forwards to port 22, whatever options the user has given to the key, and does nothing else.
func TestServerOfBastion(t *testing.T) {
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("the package openssh-server is not installed")
	}
	account, err := user.Current()
	if err == nil && account.Uid == "0" {
		account, err = user.Lookup("daemon") // it is not root
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key, hostKey := newSigner(t, ""), newSigner(t, filepath.Join(dir, "host_key"))
	authorized := `environment="A=B",command="id",pty,permitopen="*:*",permitlisten="*:*" ` + string(ssh.MarshalAuthorizedKey(key.PublicKey()))
	config := strings.NewReplacer(
		bastionKeys, dir, "AllowUsers gardener", "AllowUsers "+account.Username,
	).Replace(bastionSSHD) + "StrictModes no\n" // of the directory of the test
	for name, content := range map[string]string{"authorized_keys": authorized, "config": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		uid, err := strconv.Atoi(account.Uid)
		if err != nil {
			t.Fatal(err)
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)} //nolint:gosec // it is a user ID
		for _, name := range []string{"authorized_keys", "config", "host_key", "."} {
			if err := os.Chown(filepath.Join(dir, name), uid, uid); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { //nolint:gosec // the directory of the test's directories
			t.Fatal(err)
		}
	}
	// It listens at a port that the test has opened, as sshd -i serves one connection.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			file, err := conn.(*net.TCPConn).File() //nolint:forcetypeassert // it listens for TCP
			if err != nil {
				return
			}
			server := exec.CommandContext(t.Context(), sshd, "-i", "-f", filepath.Join(dir, "config"))
			server.Stdin, server.Stdout, server.SysProcAttr = file, file, attributes
			_ = server.Start()
			_, _ = file.Close(), conn.Close()
			go func() { _ = server.Wait() }()
		}
	}()
	dial := func(signer ssh.Signer) (*ssh.Client, error) {
		return ssh.Dial("tcp", listener.Addr().String(), &ssh.ClientConfig{
			User: account.Username, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(hostKey.PublicKey()), Timeout: time.Minute,
		})
	}
	if _, err := dial(newSigner(t, "")); err == nil {
		t.Error("another key is accepted")
	}
	connection, err := dial(key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	refused := func(t *testing.T, what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("it allows %s", what)
		}
	}
	for _, network := range []string{listener.Addr().String(), "127.0.0.1:2222"} {
		_, err := connection.DialContext(t.Context(), "tcp", network)
		if refused(t, "connections to "+network, err); err != nil && !strings.Contains(err.Error(), "administratively prohibited") {
			t.Errorf("connections to %s are not refused, but fail: %v", network, err)
		}
	}
	// Nothing has to listen at port 22 here.
	if conn, err := connection.DialContext(t.Context(), "tcp", "127.0.0.1:22"); err == nil {
		_ = conn.Close()
	} else if strings.Contains(err.Error(), "administratively prohibited") {
		t.Errorf("it does not forward to SSH servers: %v", err)
	}
	_, err = connection.Listen("tcp", "127.0.0.1:0")
	refused(t, "to listen", err)
	_, err = connection.DialContext(t.Context(), "unix", "/run/any.sock")
	refused(t, "connections to sockets", err)
	session, err := connection.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "a terminal", session.RequestPty("xterm", 10, 10, nil))
	out, err := session.Output("id")
	if refused(t, "commands", err); strings.Contains(string(out), "uid=") {
		t.Errorf("a command says %q", out)
	}
	session, err = connection.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "subsystems", session.RequestSubsystem("sftp"))
}

// newSigner returns a key, which is also written to a file if there is one.
func newSigner(t *testing.T, file string) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if file != "" {
		block, err := ssh.MarshalPrivateKey(private, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}
