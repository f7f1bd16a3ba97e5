package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

func clientWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&hostsv1alpha1.Host{}, &hostsv1alpha1.HostClaim{}).Build()
}

// Two processes that both think that they lead give hosts to claims at once: a host has one claim, and a claim one host.
func TestClaimsExactlyOnce(t *testing.T) {
	const machines, servers = 6, 4
	var objects []client.Object
	for i := range servers {
		objects = append(objects, host(fmt.Sprintf("h%d", i)))
	}
	for i := range machines {
		objects = append(objects, claim(func(c *hostsv1alpha1.HostClaim) {
			c.Name, c.UID, c.Finalizers = fmt.Sprintf("m%d", i), types.UID(fmt.Sprint(i)), []string{hostsv1alpha1.HostFinalizer}
		}))
	}
	c := clientWith(t, objects...)
	all := &hostsv1alpha1.HostList{}
	reconcileAll := func() {
		var group sync.WaitGroup
		for range 2 {
			r := &claims{client: c, reader: c, clock: clock.RealClock{}}
			for i := range machines {
				group.Go(func() {
					for range 4 { // reserve, bind, report, and one in vain
						if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("m%d", i)}}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		group.Wait()
		if err := c.List(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	for range machines { // each round, at least one of those that compete wins
		reconcileAll()
	}
	hostOf := map[types.UID]string{}
	for _, h := range all.Items {
		if h.Status.Claim == nil || h.Status.Phase != hostsv1alpha1.HostClaimed {
			t.Errorf("host %s is %s", h.Name, h.Status.Phase)
			continue
		}
		if other := hostOf[h.Status.Claim.UID]; other != "" {
			t.Errorf("claim %s has the hosts %s and %s", h.Status.Claim.Name, other, h.Name)
		}
		hostOf[h.Status.Claim.UID] = h.Name
	}
	list := &hostsv1alpha1.HostClaimList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, claim := range list.Items {
		if has := hostOf[claim.UID]; claim.Status.Bound != (has != "") || claim.Status.Bound && claim.Status.HostName != has || !claim.Status.Bound && claim.Status.Message == "" {
			t.Errorf("claim %s has the host %q, and reports %+v", claim.Name, has, claim.Status)
		}
	}
}

// Hosts of a shoot do not hold up those of another one.
func TestHostsPerNamespace(t *testing.T) {
	of := func(name, namespace string) *hostsv1alpha1.Host {
		return host(name, machineOf("1", true), in(hostsv1alpha1.HostCleaning), func(h *hostsv1alpha1.Host) {
			h.Status.Claim.Namespace, h.Spec.KeySecretRef = namespace, corev1.SecretReference{Namespace: "garden", Name: "key"}
		})
	}
	given := func(name string) *hostsv1alpha1.Host {
		return host(name, in(hostsv1alpha1.HostFailed), unreachable, func(h *hostsv1alpha1.Host) {
			h.Spec.KeySecretRef = corev1.SecretReference{Namespace: "garden", Name: "key"}
		})
	}
	c := clientWith(t, of("a", "hostile"), of("b", "hostile"), of("c", "hostile"), of("d", "other"), given("x"), given("y"), given("z"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "key"}})
	started, end := make(chan string), make(chan struct{})
	r := &servers{client: c, reader: c, clock: clock.RealClock{}, run: func(_ context.Context, h *hostsv1alpha1.Host, _ []byte, _ string, _ []byte, _ ...string) (string, error) {
		started <- h.Name
		<-end
		return "", &exitError{"exit status 1"}
	}}
	reconcileHost := func(name string) reconcile.Result {
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err != nil {
			t.Error(err)
		}
		return result
	}
	var group sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		group.Go(func() { reconcileHost(name) })
		<-started
	}
	if result := reconcileHost("c"); result.RequeueAfter != busyRetry {
		t.Errorf("a third host is worked on: %+v", result)
	}
	group.Go(func() { reconcileHost("d") })
	if name := <-started; name != "d" {
		t.Errorf("host %s is worked on", name)
	}
	for _, name := range []string{"x", "y"} {
		group.Go(func() { reconcileHost(name) })
		<-started
	}
	if result := reconcileHost("z"); result.RequeueAfter != busyRetry {
		t.Errorf("a third host that was given up is worked on: %+v", result)
	}
	close(end)
	group.Wait()
	group.Go(func() { reconcileHost("c") })
	if name := <-started; name != "c" {
		t.Errorf("host %s is worked on", name)
	}
	group.Wait()
	if len(r.busy.taken) > 0 {
		t.Errorf("these are taken: %v", r.busy.taken)
	}
}

func TestProvisioningFails(t *testing.T) {
	h := host("a", machineOf("1", false))
	h.Spec.KeySecretRef = corev1.SecretReference{Namespace: "garden", Name: "key"}
	claimed := claim(func(c *hostsv1alpha1.HostClaim) { c.Spec.UserDataSecretName = "userdata" })
	c := clientWith(t, h, claimed, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "key"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "userdata"}})
	failure := error(&exitError{"exit status 1: no space left on device"})
	r := &servers{client: c, reader: c, clock: clock.RealClock{}, run: func(context.Context, *hostsv1alpha1.Host, []byte, string, []byte, ...string) (string, error) {
		return "", failure
	}}
	for _, want := range []string{"could not be provisioned: exit status 1: no space left on device", ""} {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}); (err != nil) != (want != "") {
			t.Errorf("the error is %v", err)
		}
		before := h.DeepCopy()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(h), h); err != nil {
			t.Fatal(err)
		}
		if h.Status.Phase != hostsv1alpha1.HostClaimed || h.Status.Message != want || h.Status.Claim.Provisioned != (want == "") {
			t.Errorf("the status is %+v", h.Status)
		}
		// The message alone is no reason for another try without a delay.
		if same := apiequality.Semantic.DeepEqual(decisive(before), decisive(h)); same != (want != "") {
			t.Errorf("with the message %q, the change is decisive: %v", h.Status.Message, !same)
		}
		failure = nil
	}
}

func TestConcurrency(t *testing.T) {
	o := NewOptions()
	if got := concurrencyOf(o); got != o.MaxConcurrentReconciles {
		t.Errorf("it is %d", got)
	}
	*o.Concurrency[hostController] = 7
	if got := concurrencyOf(o); got != 7 {
		t.Errorf("with the flag, it is %d", got)
	}
}

func TestUnreachableHosts(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	refused := errors.New("connection refused")
	for name, tc := range map[string]struct {
		host    *hostsv1alpha1.Host
		after   time.Duration
		err     error
		phase   hostsv1alpha1.HostPhase
		reason  string
		retries bool
	}{
		"a new one is tried again":                     {host: host("a", in("")), err: refused, phase: "", reason: "NotConnected", retries: true},
		"one with another key is tried again":          {host: host("a", in("")), err: errUntrusted, phase: "", reason: "HostKeyMismatch", retries: true},
		"an installed one that has another key":        {host: host("a", changed), err: errUntrusted, phase: hostsv1alpha1.HostPending, reason: "HostKeyMismatch", retries: true},
		"an available one that is changed and dirty":   {host: host("a", changed), err: &exitError{"exit status 1"}, phase: hostsv1alpha1.HostFailed, reason: "Connected"},
		"one that may be rebooting is tried again":     {host: host("a", machineOf("1", true), in(hostsv1alpha1.HostCleaning)), after: time.Minute, err: refused, phase: hostsv1alpha1.HostCleaning, reason: "NotConnected", retries: true},
		"one that does not come back fails":            {host: host("a", machineOf("1", true), in(hostsv1alpha1.HostCleaning)), after: time.Hour, err: refused, phase: hostsv1alpha1.HostFailed, reason: "NotConnected", retries: true},
		"one whose script fails, fails at once":        {host: host("a", machineOf("1", true), in(hostsv1alpha1.HostCleaning)), err: &exitError{"exit status 1"}, phase: hostsv1alpha1.HostFailed, reason: "Connected"},
		"a new one that does not let it run any fails": {host: host("a", in("")), err: &exitError{"sudo: a password is required"}, phase: hostsv1alpha1.HostFailed, reason: "Connected"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.host.Status.PhaseSince = &metav1.Time{Time: begin}
			tc.host.Spec.KeySecretRef = corev1.SecretReference{Namespace: "garden", Name: "key"}
			key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "key"}, Data: map[string][]byte{corev1.SSHAuthPrivateKey: []byte("private")}}
			c := clientWith(t, tc.host, key)
			r := &servers{
				client: c, reader: c, clock: testingclock.NewFakePassiveClock(begin.Add(tc.after)),
				run: func(context.Context, *hostsv1alpha1.Host, []byte, string, []byte, ...string) (string, error) {
					return "", tc.err
				},
			}
			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
			if (err != nil) != tc.retries {
				t.Errorf("the error is %v", err)
			}
			got := &hostsv1alpha1.Host{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, got); err != nil {
				t.Fatal(err)
			}
			if got.Status.Phase != tc.phase || len(got.Status.Conditions) != 1 || got.Status.Conditions[0].Reason != tc.reason {
				t.Errorf("the status is %+v", got.Status)
			}
			if failed := got.Status.Phase == hostsv1alpha1.HostFailed; failed != (got.Status.Message != "") || failed && got.Status.Claim != nil || strings.Contains(fmt.Sprint(got.Status), "private") {
				t.Errorf("the status is %+v", got.Status)
			}
		})
	}
}

// A server that was installed again is handed out when it has been checked, once.
func TestChangedHostIsChecked(t *testing.T) {
	since, runs := metav1.Unix(1_000_000, 0), 0
	h := host("a", changed)
	h.Status.PhaseSince, h.Spec.KeySecretRef = &since, corev1.SecretReference{Namespace: "garden", Name: "key"}
	c := clientWith(t, h, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "key"}})
	r := &servers{client: c, reader: c, clock: clock.RealClock{}, run: func(context.Context, *hostsv1alpha1.Host, []byte, string, []byte, ...string) (string, error) {
		runs++
		return "hostname=a\ncpu=8\nmemory=16310012Ki\n", nil
	}}
	if available(h) {
		t.Error("it is handed out before")
	}
	for range 3 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(h), h); err != nil {
		t.Fatal(err)
	}
	if runs != 1 || !available(h) || !h.Status.PhaseSince.Equal(&since) || h.Status.Capacity.Cpu().Value() != 8 {
		t.Errorf("after %d checks, the status is %+v", runs, h.Status)
	}
}

// A server that was dead when its machine was deleted is still that machine when it comes back, and is cleaned then.
func TestHostThatComesBack(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	h := host("a", machineOf("1", true), in(hostsv1alpha1.HostCleaning))
	h.Status.PhaseSince, h.Spec.KeySecretRef = &metav1.Time{Time: begin}, corev1.SecretReference{Namespace: "garden", Name: "key"}
	c := clientWith(t, h, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "key"}})
	now, connection, cleaned := testingclock.NewFakePassiveClock(begin.Add(time.Hour)), errors.New("connection refused"), 0
	r := &servers{client: c, reader: c, clock: now, run: func(_ context.Context, _ *hostsv1alpha1.Host, _ []byte, script string, _ []byte, args ...string) (string, error) {
		if script == cleanScript && connection == nil {
			cleaned++
		}
		return "hostname=a\ncpu=8\n", connection
	}}
	pass := func(fails bool) (changed bool) {
		before := h.DeepCopy()
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
		if (err != nil) != fails {
			t.Errorf("the error is %v", err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(h), h); err != nil {
			t.Fatal(err)
		}
		return !apiequality.Semantic.DeepEqual(decisive(before), decisive(h))
	}
	if pass(true); h.Status.Phase != hostsv1alpha1.HostFailed || h.Status.Claim != nil {
		t.Errorf("the status is %+v", h.Status)
	}
	now.SetTime(begin.Add(2 * time.Hour))
	if pass(true) {
		t.Error("a try changes what makes it tried again without a delay")
	}
	connection = nil
	if pass(false); h.Status.Phase != hostsv1alpha1.HostAvailable || h.Status.Message != "" || cleaned != 1 {
		t.Errorf("it was cleaned %d times, and its status is %+v", cleaned, h.Status)
	}
	if pass(false) || cleaned != 1 {
		t.Errorf("it was cleaned %d times", cleaned)
	}
}
