//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/kube"
	product "gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/test/e2e/serverimage"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/snapshot"
)

// shootTimeout is for the creation or deletion of a shoot on a busy machine.
const shootTimeout = 15 * time.Minute

// running is the name of a running landscape.
var running = flag.String("landscape", "", "name of a running landscape, for TestRunning")

// TestRunning runs the tests that need no landscape of their own on a running one: go test -tags e2e -timeout 45m -run TestRunning ./test/e2e -landscape local
func TestRunning(t *testing.T) {
	if *running == "" {
		t.Skip("-landscape names no running landscape")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	l := &landscape{binary: filepath.Join(root, "bin", "landscape"), name: *running, dir: filepath.Join(root, ".landscape")}
	l.artifacts = filepath.Join(root, ".artifacts", l.name)
	l.connect(t)
	t.Cleanup(func() { l.keepArtifacts(t) })
	l.run(t, "images", "push", serverimage.Reference, serverTar(t))
	l.timed(t, "gateway", func(t *testing.T) { testGateway(t, l) })
	l.timed(t, "without nodes", func(t *testing.T) { testWorkerless(t, l) })
	l.timed(t, "hibernated", func(t *testing.T) { testHibernated(t, l) })
	l.timed(t, "with a node", func(t *testing.T) { testShoot(t, l) })
	l.timed(t, "on a server", func(t *testing.T) { testHosts(t, l) })
	if _, err := l.cli(t, "kubeconfig", secondSeed); err == nil { // It gets no second seed that it does not have.
		l.timed(t, "two seeds", func(t *testing.T) { testSeeds(t, l) })
	}
}

// create creates a shoot. It is deleted at the end of the test, which may be interrupted, on a landscape that may keep running.
func (l *landscape) create(t *testing.T, shoot *corev1beta1.Shoot) client.ObjectKey {
	t.Helper()
	key := client.ObjectKeyFromObject(shoot)
	if err := l.garden.client.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.keepArtifacts(t) // for a failure, before the shoot is deleted
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := kube.DeleteShoot(ctx, l.garden.client, key); err != nil {
			t.Error(err)
		}
	})
	return key
}

// testWorkerless tests the life of a shoot without workers.
func testWorkerless(t *testing.T, l *landscape) {
	// The sample shoot may exist, and is kept.
	const other = "shoot--local--local"
	before := l.snapshot(t, other)
	shoot := sample(t, example.ShootWorkerless)
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AuthenticationIssuer, constants.AuthenticationIssuerManaged)
	key := l.create(t, shoot)
	l.basic(t, "it becomes healthy and reports its progress", func(t *testing.T) {
		var progress []int32
		l.awaitShoot(t, key, func(shoot *corev1beta1.Shoot) error {
			if shoot != nil && shoot.Status.LastOperation != nil {
				progress = append(progress, shoot.Status.LastOperation.Progress)
			}
			return kube.ShootHealthy(shoot)
		})
		if progress = slices.Compact(progress); len(progress) < 3 || !slices.IsSorted(progress) {
			t.Errorf("progress was %v", progress)
		}
	})
	admin, viewer := l.shoot(t, key), l.shoot(t, key, "--viewer")
	precious := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "precious"}, Data: map[string]string{"a": "b"}}
	l.timed(t, "an admin writes, a viewer reads", func(t *testing.T) {
		if err := admin.client.Create(t.Context(), precious); err != nil {
			t.Fatal(err)
		}
		if err := viewer.client.Get(t.Context(), client.ObjectKeyFromObject(precious), &corev1.ConfigMap{}); err != nil {
			t.Errorf("the viewer reads: %v", err)
		}
		if err := viewer.client.Delete(t.Context(), precious); !apierrors.IsForbidden(err) {
			t.Errorf("the viewer deletes: %v", err)
		}
		if err := viewer.client.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
			t.Errorf("the viewer lists Secrets: %v", err)
		}
	})
	l.timed(t, "its tokens have a managed issuer, whose documents are in the garden", func(t *testing.T) { l.expectManagedIssuer(t, key, admin) })
	l.timed(t, "a change of its kube-apiserver is rolled out, and objects stay", func(t *testing.T) {
		l.patchShoot(t, key, `{"spec":{"kubernetes":{"kubeAPIServer":{"eventTTL":"30m"}}}}`)
		l.awaitShoot(t, key, kube.ShootHealthy)
		current := &corev1beta1.Shoot{}
		if err := l.garden.client.Get(t.Context(), key, current); err != nil {
			t.Fatal(err)
		}
		servers := &corev1.PodList{}
		if err := l.client.List(t.Context(), servers, client.InNamespace(current.Status.TechnicalID)); err != nil {
			t.Fatal(err)
		}
		var args []string
		for _, pod := range servers.Items {
			if pod.Labels["role"] == "apiserver" && pod.DeletionTimestamp == nil {
				args = append(args, pod.Spec.Containers[0].Args...)
				args = append(args, pod.Spec.Containers[0].Command...)
			}
		}
		if !slices.Contains(args, "--event-ttl=30m0s") {
			t.Errorf("kube-apiserver runs with %q", args)
		}
		kept := &corev1.ConfigMap{}
		eventually(t, func(ctx context.Context) error {
			return admin.client.Get(ctx, client.ObjectKeyFromObject(precious), kept)
		})
		if kept.UID != precious.UID || kept.Data["a"] != "b" {
			t.Errorf("the ConfigMap is %+v", kept)
		}
	})
	l.timed(t, "its credentials are rotated", func(t *testing.T) { l.rotate(t, key, admin) })
	l.timed(t, "it is deleted without leftovers", func(t *testing.T) {
		l.deleteShoot(t, key)
		l.expectAsBefore(t, before, other)
	})
}

// expectManagedIssuer expects that Gardener has the documents of the issuer of a shoot's tokens, with which third parties verify these.
func (l *landscape) expectManagedIssuer(t *testing.T, key client.ObjectKey, admin cluster) {
	t.Helper()
	shoot := &corev1beta1.Shoot{}
	if err := l.garden.client.Get(t.Context(), key, shoot); err != nil {
		t.Fatal(err)
	}
	var issuer string
	for _, address := range shoot.Status.AdvertisedAddresses {
		if address.Name == constants.AdvertisedAddressServiceAccountIssuer {
			issuer = address.URL
		}
	}
	if want := fmt.Sprintf("/projects/local/shoots/%s/issuer", shoot.UID); !strings.HasSuffix(issuer, want) {
		t.Fatalf("the advertised issuer is %q, want one that ends with %q", issuer, want)
	}
	documents := &corev1.Secret{}
	name := client.ObjectKey{Namespace: constants.GardenerShootIssuerNamespace, Name: "local--" + string(shoot.UID)}
	if err := l.garden.client.Get(t.Context(), name, documents); err != nil {
		t.Fatal(err)
	}
	if config := string(documents.Data["openid-config"]); !strings.Contains(config, `"`+issuer+`"`) || len(documents.Data["jwks"]) == 0 {
		t.Errorf("the documents are %s and %s", config, documents.Data["jwks"])
	}
	// kube-controller-manager creates it a moment after the namespace.
	account := env.Await(t, admin.client, env.Named[*corev1.ServiceAccount]("default", "default"), env.Exists)
	const audience = "https://cloud.example.com"
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	if err := admin.client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(t.Context(), l.discoveryClient(t)), timeout)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		t.Fatal(err)
	}
	token, err := provider.Verifier(&oidc.Config{ClientID: audience}).Verify(ctx, request.Status.Token)
	if err != nil || token.Subject != "system:serviceaccount:default:default" {
		t.Errorf("a third party gets %+v, %v", token, err)
	}
	if _, err := provider.Verifier(&oidc.Config{ClientID: audience}).Verify(ctx, request.Status.Token[:len(request.Status.Token)-8]+"AAAAAAAA"); err == nil {
		t.Error("a third party accepts a token with another signature")
	}
}

// discoveryClient is a client of a third party: it reaches the discovery server through the gateway, and knows its CA.
func (l *landscape) discoveryClient(t *testing.T) *http.Client {
	t.Helper()
	authorities := &corev1.SecretList{}
	if err := l.client.List(t.Context(), authorities, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{"bundle-for": "ca-gardener"}); err != nil || len(authorities.Items) == 0 {
		t.Fatalf("there are %d bundles of the CA: %v", len(authorities.Items), err)
	}
	roots := x509.NewCertPool()
	for _, secret := range authorities.Items {
		roots.AppendCertsFromPEM(secret.Data["bundle.crt"])
	}
	address := l.gatewayAddress(t)
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
}

// rotate rotates all credentials of a shoot. Old kubeconfigs are valid until the completion.
func (l *landscape) rotate(t *testing.T, key client.ObjectKey, old cluster) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old"}, StringData: map[string]string{"a": "b"}}
	if err := old.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	operate := func(operation string, want corev1beta1.CredentialsRotationPhase) {
		t.Helper()
		l.patchShoot(t, key, `{"metadata":{"annotations":{"gardener.cloud/operation":"`+operation+`"}}}`)
		l.awaitShoot(t, key, func(shoot *corev1beta1.Shoot) error {
			if err := kube.ShootHealthy(shoot); err != nil {
				return err
			}
			return rotated(shoot.Status.Credentials, want)
		})
	}
	// works reads an existing object, and checks that a controller works: kube-controller-manager creates a ServiceAccount per namespace.
	works := func(c cluster, name string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if err := c.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			if err := c.client.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}); err != nil {
				return err
			}
			return c.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		})
	}
	operate("rotate-credentials-start", corev1beta1.RotationPrepared)
	works(old, "prepared")
	renewed := l.shoot(t, key)
	operate("rotate-credentials-complete", corev1beta1.RotationCompleted)
	works(renewed, "completed")
	eventually(t, func(ctx context.Context) error {
		if err := old.client.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}); err == nil {
			return errors.New("the kubeconfig from before the rotation still works")
		}
		return nil
	})
}

// rotated returns nil when the rotations of all credentials with phases are in the given one.
func rotated(credentials *corev1beta1.ShootCredentials, want corev1beta1.CredentialsRotationPhase) error {
	if credentials == nil || credentials.Rotation == nil {
		return errors.New("no rotation")
	}
	r := credentials.Rotation
	if r.CertificateAuthorities == nil || r.ServiceAccountKey == nil || r.ETCDEncryptionKey == nil {
		return errors.New("not all are rotated")
	}
	got := []corev1beta1.CredentialsRotationPhase{r.CertificateAuthorities.Phase, r.ServiceAccountKey.Phase, r.ETCDEncryptionKey.Phase}
	if slices.ContainsFunc(got, func(phase corev1beta1.CredentialsRotationPhase) bool { return phase != want }) {
		return fmt.Errorf("CA, service account key and encryption key are %q", got)
	}
	return nil
}

// testHibernated creates a shoot that is hibernated from the start, and deletes it in this state.
func testHibernated(t *testing.T, l *landscape) {
	const other = "shoot--local--local"
	before := l.snapshot(t, other)
	shoot := sample(t, example.Shoot)
	shoot.Name, shoot.Spec.Hibernation = "hibernated", &corev1beta1.Hibernation{Enabled: new(true)}
	key := l.create(t, shoot)
	l.basic(t, "it is created without machines", func(t *testing.T) {
		l.awaitShoot(t, key, func(shoot *corev1beta1.Shoot) error {
			if shoot != nil && !shoot.Status.Hibernated {
				return errors.New("it is not hibernated")
			}
			return kube.ShootHealthy(shoot)
		})
		machines := &machinev1alpha1.MachineList{}
		if err := l.client.List(t.Context(), machines, client.InNamespace("shoot--local--hibernated")); err != nil || len(machines.Items) > 0 {
			t.Errorf("there are %d machines, %v", len(machines.Items), err)
		}
	})
	l.timed(t, "it is deleted without leftovers", func(t *testing.T) {
		l.deleteShoot(t, key)
		l.expectAsBefore(t, before, other)
	})
}

// testShoot tests the shoot that "up" creates, which has a node.
func testShoot(t *testing.T, l *landscape) {
	key := product.SampleShoot
	before := l.snapshot(t, "shoot--local--local")
	data := l.shootData(t)
	existed := l.garden.client.Get(t.Context(), key, &corev1beta1.Shoot{}) == nil
	l.basic(t, "up creates it", func(t *testing.T) { testEvents(t, l) })
	l.timed(t, "a second up changes nothing", func(t *testing.T) {
		was, is := &corev1beta1.Shoot{}, &corev1beta1.Shoot{}
		if err := l.garden.client.Get(t.Context(), key, was); err != nil {
			t.Fatal(err)
		}
		uid := l.node(t, "runtime-0").UID
		l.run(t, "up")
		if now := l.node(t, "runtime-0").UID; now != uid {
			t.Error("the node was replaced")
		}
		if err := l.garden.client.Get(t.Context(), key, is); err != nil {
			t.Fatal(err)
		}
		if is.UID != was.UID || is.Generation != was.Generation {
			t.Errorf("the shoot is %s in generation %d, and was %s in %d", is.UID, is.Generation, was.UID, was.Generation)
		}
	})
	l.timed(t, "status is healthy", l.awaitStatus)
	admin := l.shoot(t, key)
	testInside(t, l, admin)
	l.timed(t, "a load balancer is answered by a pod", func(t *testing.T) { testLoadBalancer(t, admin) })
	l.timed(t, "a volume outlives its pod", func(t *testing.T) { testShootVolume(t, admin) })
	l.timed(t, "a user logs in to a node through a bastion", func(t *testing.T) { testSSH(t, l, key, admin) })
	l.timed(t, "its spec has the range of its nodes", func(t *testing.T) { testNodeRange(t, l, key, admin) })
	l.timed(t, "nodes come for pods, and go with them", func(t *testing.T) { testAutoscaling(t, l, key, admin) })
	l.timed(t, "a pod chooses another container runtime", func(t *testing.T) { testRuntime(t, l, key, admin) })
	ipv6 := l.hasIPv6(t)
	if ipv6 {
		l.timed(t, "it gets a second IP family", func(t *testing.T) { addIPv6(t, l, key) })
	}
	l.timed(t, "its credentials are rotated, and its nodes replaced", func(t *testing.T) { testRotation(t, l, key, admin) })
	if ipv6 {
		l.timed(t, "its pods use both IP families", func(t *testing.T) { testDualStack(t, l, key) })
	}
	l.timed(t, "it is deleted without leftovers", func(t *testing.T) {
		l.deleteShoot(t, key)
		if existed {
			t.Log("it existed before the test, so nothing is compared")
			return
		}
		l.expectAsBefore(t, before)
		if diff := cmp.Diff(data, l.shootData(t)); diff != "" {
			t.Errorf("data on the machine of the seed is not as before (-before +after):\n%s", diff)
		}
	})
}

// testShootVolume tests a volume of a shoot, and deletes it before nodes are replaced, which would lose it.
func testShootVolume(t *testing.T, c cluster) {
	app := c.deploy(t, "stored", func(*appsv1.Deployment) {})
	testVolume(t, c, app)
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: app.name}
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}, &corev1.PersistentVolumeClaim{ObjectMeta: meta},
	} {
		if err := c.client.Delete(t.Context(), object); err != nil {
			t.Error(err)
		}
	}
	await(t, c.client, func(volumes []*corev1.PersistentVolume) error {
		if len(volumes) > 0 {
			return fmt.Errorf("volume %s is left", volumes[0].Name)
		}
		return nil
	}, client.InNamespace(""))
}

// testNodeRange expects that the addresses of nodes are in the range that the spec and the status have.
func testNodeRange(t *testing.T, l *landscape, key client.ObjectKey, c cluster) {
	shoot, nodes := &corev1beta1.Shoot{}, &corev1.NodeList{}
	if err := errors.Join(l.garden.client.Get(t.Context(), key, shoot), c.client.List(t.Context(), nodes)); err != nil {
		t.Fatal(err)
	}
	if shoot.Spec.Networking.Nodes == nil || shoot.Status.Networking == nil {
		t.Fatalf("networks are %+v, %+v", shoot.Spec.Networking, shoot.Status.Networking)
	}
	if diff := cmp.Diff([]string{*shoot.Spec.Networking.Nodes}, shoot.Status.Networking.Nodes); diff != "" {
		t.Errorf("nodes (-spec +status):\n%s", diff)
	}
	prefix, err := netip.ParsePrefix(*shoot.Spec.Networking.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		for _, address := range node.Status.Addresses {
			if address.Type != corev1.NodeInternalIP {
				continue
			}
			if ip, err := netip.ParseAddr(address.Address); err != nil || !prefix.Contains(ip) {
				t.Errorf("node %s has the address %s, which is not in %s (%v)", node.Name, address.Address, prefix, err)
			}
		}
	}
}

// testRotation rotates the credentials of a shoot with nodes. They get new machines, and pods on them are reached through the new tunnel.
func testRotation(t *testing.T, l *landscape, key client.ObjectKey, old cluster) {
	nodes := &corev1.NodeList{}
	if err := old.client.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	former := map[types.UID]bool{}
	for _, node := range nodes.Items {
		former[node.UID] = true
	}
	l.rotate(t, key, old)
	renewed := l.shoot(t, key)
	await(t, renewed.client, func(nodes []*corev1.Node) error {
		if len(nodes) == 0 {
			return errors.New("there are no nodes")
		}
		for _, node := range nodes {
			if former[node.UID] {
				return fmt.Errorf("node %s has the old credentials", node.Name)
			}
			if err := kube.NodeReady(node); err != nil {
				return err
			}
		}
		return nil
	}, client.InNamespace(""))
	renewed.awaitDeployment(t, "app")
	eventually(t, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := renewed.client.List(ctx, pods, client.InNamespace("default"), client.MatchingLabels{"app": "app"}); err != nil {
			return err
		}
		pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		pod := pods.Items[0].Name
		logs, err := renewed.clientset.CoreV1().Pods("default").GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil || !strings.Contains(string(logs), "listening") {
			return fmt.Errorf("logs = %q, %w", logs, err)
		}
		if out, err := renewed.execIn(ctx, "default", pod, "/server", "say", "hello"); err != nil || out != "[hello]\n" {
			return fmt.Errorf("output = %q, %w", out, err)
		}
		return nil
	})
}

// shootData are the volumes on the machine of the seed, and the backups of shoots.
func (l *landscape) shootData(t *testing.T) []string {
	t.Helper()
	paths := strings.Fields(l.run(t, "shell", "runtime-0", "--", "find", "/var/lib/containerd/local-storage", "/etc/gardener/local-backupbuckets",
		"-mindepth", "1", "-maxdepth", "2", "(", "-name", "pvc-*", "-o", "-name", "shoot--*", ")"))
	slices.Sort(paths)
	return paths
}

// testEvents brings the landscape up with events for programs.
func testEvents(t *testing.T, l *landscape) {
	var last struct {
		Step, State, ShootKubeconfig string
	}
	steps := map[string]bool{}
	for decoder := json.NewDecoder(strings.NewReader(l.run(t, "up", "--json"))); decoder.More(); {
		last.Step, last.State = "", ""
		if err := decoder.Decode(&last); err != nil {
			t.Fatal(err)
		}
		steps[last.Step+" "+last.State] = true
	}
	if !steps["Creating shoot garden-local/local Succeeded"] {
		t.Errorf("steps were %v", steps)
	}
	if !exists(last.ShootKubeconfig) {
		t.Errorf("there is no kubeconfig %q", last.ShootKubeconfig)
	}
}

// testInside uses a shoot with a node.
func testInside(t *testing.T, l *landscape, c cluster) {
	service := c.deployServer(t)
	proxied := func(t *testing.T, path string, params map[string]string) (got string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			data, err := c.clientset.CoreV1().Services("default").ProxyGet("http", "app", "80", path, params).DoRaw(ctx)
			got = string(data)
			return err
		})
		return got
	}
	l.basic(t, "a node is ready and runs pods", func(t *testing.T) {
		c.awaitDeployment(t, "app")
		nodes := &corev1.NodeList{}
		if err := c.client.List(t.Context(), nodes); err != nil || len(nodes.Items) == 0 {
			t.Fatalf("%d nodes, %v", len(nodes.Items), err)
		}
		for i := range nodes.Items {
			if err := kube.NodeReady(&nodes.Items[i]); err != nil {
				t.Error(err)
			}
		}
	})
	l.timed(t, "the API server reaches a Service", func(t *testing.T) {
		if got := proxied(t, "/hostname", nil); !strings.HasPrefix(got, "app-") {
			t.Errorf("answered by %q", got)
		}
	})
	l.timed(t, "names resolve inside", func(t *testing.T) {
		if got, want := proxied(t, "/resolve", map[string]string{"name": "app"}), "["+service.Spec.ClusterIP+"]"; got != want {
			t.Errorf("app is %s, want %s", got, want)
		}
	})
	l.timed(t, "a cluster IP is answered", func(t *testing.T) {
		if got := proxied(t, "/fetch", map[string]string{"url": "http://app.default.svc/hostname"}); !strings.HasPrefix(got, "app-") {
			t.Errorf("answered by %q", got)
		}
	})
	l.timed(t, "a pod reaches the API server by its name", func(t *testing.T) {
		if got := proxied(t, "/api", map[string]string{"path": "/version"}); !strings.Contains(got, `"gitVersion"`) {
			t.Errorf("answer is %q", got)
		}
	})
	l.timed(t, "logs, exec, port-forward", func(t *testing.T) {
		pod := c.pod(t, "app").Name
		logs, err := c.clientset.CoreV1().Pods("default").GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(logs), "listening") {
			t.Errorf("logs = %q, %v", logs, err)
		}
		if got := c.exec(t, pod, "/server", "say", "hello"); got != "[hello]\n" {
			t.Errorf("output = %q", got)
		}
		if got := c.portForward(t, pod, "/hostname"); got != pod {
			t.Errorf("answered by %q", got)
		}
	})
	l.timed(t, "a webhook in a pod is called", func(t *testing.T) { testWebhook(t, c) })
	l.timed(t, "metrics are served, and used for scaling", func(t *testing.T) { testMetrics(t, c) })
}

// testLoadBalancer reaches the test server by a load balancer from this computer. It goes with its Service.
func testLoadBalancer(t *testing.T, c cluster) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "public"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "app"},
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt(8080)}},
		},
	}
	if err := c.client.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	address := ""
	named := client.MatchingFields{"metadata.name": service.Name}
	await(t, c.client, func(services []*corev1.Service) error {
		if len(services) == 0 || len(services[0].Status.LoadBalancer.Ingress) == 0 {
			return errors.New("the Service has no address")
		}
		address = services[0].Status.LoadBalancer.Ingress[0].IP
		return nil
	}, named)
	if got := (app{address: address}).get(t, "/hostname"); !strings.HasPrefix(got, "app-") {
		t.Errorf("answered by %q", got)
	}
	if err := c.client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	await(t, c.client, env.None[*corev1.Service], named)
}

// deployServer runs the test server with a certificate, and a HorizontalPodAutoscaler for its CPU usage.
func (c cluster) deployServer(t *testing.T) *corev1.Service {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "default", Name: "app"}
	certificate, key, err := certutil.GenerateSelfSignedCertKey("app.default.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}}
	deployment := serverDeployment("app")
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}}
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "app"}}}}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "app"}, Ports: []corev1.ServicePort{
		{Name: "http", Port: 80, TargetPort: intstr.FromInt(8080)}, {Name: "https", Port: 443, TargetPort: intstr.FromInt(8443)},
	}}}
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "app"}, MaxReplicas: 1,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
		}}},
	}}
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "e2e"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "e2e.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: new(int32(5)),
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"e2e": "checked"}},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			CABundle: certificate, Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "app", Path: new("/validate")},
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
	}}}
	if err := kube.Apply(t.Context(), c.client, "e2e", secret, deployment, service, scaler, webhook); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(service), service); err != nil {
		t.Fatal(err)
	}
	return service
}

func testWebhook(t *testing.T, c cluster) {
	create := func(ctx context.Context, name string) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"e2e": "checked"}}}
		return c.client.Create(ctx, object, client.DryRunAll)
	}
	eventually(t, func(ctx context.Context) error {
		if err := create(ctx, "refused"); err == nil || !strings.Contains(err.Error(), "the pod says no") {
			return fmt.Errorf("the answer is: %w", err)
		}
		return nil
	})
	if err := create(t.Context(), "allowed"); err != nil {
		t.Error(err)
	}
}

func testMetrics(t *testing.T, c cluster) {
	eventually(t, func(ctx context.Context) error {
		data, err := c.clientset.RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes").DoRaw(ctx)
		if err == nil && !strings.Contains(string(data), `"memory"`) {
			err = fmt.Errorf("metrics of nodes are %s", data)
		}
		return err
	})
	await(t, c.client, func(scalers []*autoscalingv2.HorizontalPodAutoscaler) error {
		if len(scalers) != 1 {
			return fmt.Errorf("there are %d", len(scalers))
		}
		for _, metric := range scalers[0].Status.CurrentMetrics {
			if metric.Resource != nil && metric.Resource.Current.AverageUtilization != nil {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", scalers[0].Status.Conditions)
	})
}

// sample is a shoot of the examples.
func sample(t *testing.T, file string) *corev1beta1.Shoot {
	t.Helper()
	objects, err := example.Objects(file)
	if err != nil {
		t.Fatal(err)
	}
	shoot := &corev1beta1.Shoot{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, shoot); err != nil {
		t.Fatal(err)
	}
	return shoot
}

// shoot connects to a shoot as a user of the command line does.
func (l *landscape) shoot(t *testing.T, key client.ObjectKey, args ...string) cluster {
	t.Helper()
	return connect(t, strings.TrimSpace(l.run(t, append([]string{"kubeconfig", "shoot", key.String()}, args...)...)))
}

// awaitShoot watches a shoot; check gets nil when it is gone.
func (l *landscape) awaitShoot(t *testing.T, key client.ObjectKey, check func(*corev1beta1.Shoot) error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(working(t), shootTimeout, fmt.Errorf("not done after %s", shootTimeout))
	defer cancel()
	if err := kube.AwaitShoot(ctx, l.garden.client, key, check, nil); err != nil {
		t.Fatal(err)
	}
}

func (l *landscape) patchShoot(t *testing.T, key client.ObjectKey, patch string) {
	t.Helper()
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := l.garden.client.Patch(t.Context(), shoot, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (l *landscape) deleteShoot(t *testing.T, key client.ObjectKey) {
	t.Helper()
	if err := kube.DeleteShoot(t.Context(), l.garden.client, key); err != nil {
		t.Fatal(err)
	}
	l.awaitShoot(t, key, kube.ShootGone)
}

// objects are the objects of the garden and of the first seed.
type objects struct{ garden, seed []string }

func (l *landscape) snapshot(t *testing.T, without ...string) (taken objects) {
	t.Helper()
	for _, part := range []struct {
		of   cluster
		into *[]string
	}{{l.garden, &taken.garden}, {l.cluster, &taken.seed}} {
		var err error
		if *part.into, err = snapshot.Take(working(t), part.of.config, without...); err != nil {
			t.Fatal(err)
		}
	}
	return taken
}

// expectAsBefore waits until garden and seed are as they were.
func (l *landscape) expectAsBefore(t *testing.T, before objects, without ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(working(t), timeout)
	defer cancel()
	if err := errors.Join(snapshot.Await(ctx, l.garden.config, before.garden, without...), snapshot.Await(ctx, l.config, before.seed, without...)); err != nil {
		t.Error(err)
	}
}

// timed runs a part of a test, logs how long it took, and returns whether it passed. If not, artifacts are kept before other parts run.
func (l *landscape) timed(t *testing.T, name string, do func(*testing.T)) bool {
	t.Helper()
	return t.Run(name, func(t *testing.T) {
		defer l.keepArtifacts(t)
		start := time.Now()
		do(t)
		t.Logf("it took %s", time.Since(start).Round(100*time.Millisecond))
	})
}

// basic is timed for a part that all later parts need: these would only fail after their timeouts.
func (l *landscape) basic(t *testing.T, name string, do func(*testing.T)) {
	t.Helper()
	if !l.timed(t, name, do) {
		t.FailNow()
	}
}

// eventually retries something that cannot be watched until it succeeds.
func eventually(t *testing.T, do func(context.Context) error) {
	t.Helper()
	last := errors.New("it was not tried")
	waiting := newWaiting(t)
	if err := wait.PollUntilContextTimeout(working(t), 250*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		last = do(ctx)
		waiting.note(last)
		return last == nil, nil
	}); err != nil {
		t.Fatal(last)
	}
}
