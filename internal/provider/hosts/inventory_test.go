package hosts

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

// host returns an available host of the type small.
func host(name string, changes ...func(*hostsv1alpha1.Host)) *hostsv1alpha1.Host {
	h := &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2, Finalizers: []string{hostsv1alpha1.HostFinalizer}}}
	h.Spec = hostsv1alpha1.HostSpec{MachineType: "small", Zone: "a", User: "root"}
	h.Status.Phase = hostsv1alpha1.HostAvailable
	h.Status.Conditions = []metav1.Condition{{Type: hostsv1alpha1.ConditionReachable, Status: metav1.ConditionTrue, ObservedGeneration: 2, Reason: "Connected"}}
	for _, change := range changes {
		change(h)
	}
	return h
}

func in(phase hostsv1alpha1.HostPhase) func(*hostsv1alpha1.Host) {
	return func(h *hostsv1alpha1.Host) { h.Status.Phase = phase }
}

func changed(h *hostsv1alpha1.Host)      { h.Generation++ }
func unreachable(h *hostsv1alpha1.Host)  { h.Status.Conditions[0].Status = metav1.ConditionFalse }
func neverReached(h *hostsv1alpha1.Host) { h.Status.Conditions = nil }

func machineOf(claim types.UID, provisioned bool) func(*hostsv1alpha1.Host) {
	return func(h *hostsv1alpha1.Host) {
		h.Status.Phase, h.Status.Claim = hostsv1alpha1.HostClaimed, &hostsv1alpha1.Claimant{Namespace: "ns", Name: "m", UID: claim, Provisioned: provisioned}
	}
}

func deleted(h *hostsv1alpha1.Host) { h.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func claim(changes ...func(*hostsv1alpha1.HostClaim)) *hostsv1alpha1.HostClaim {
	c := &hostsv1alpha1.HostClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "1"}}
	c.Spec.MachineProviderSpec = hostsv1alpha1.MachineProviderSpec{MachineType: "small"}
	for _, change := range changes {
		change(c)
	}
	return c
}

func reserves(host string) func(*hostsv1alpha1.HostClaim) {
	return func(c *hostsv1alpha1.HostClaim) { c.Status.HostName = host }
}

func ends(c *hostsv1alpha1.HostClaim)  { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func bound(c *hostsv1alpha1.HostClaim) { c.Status.Bound = true }

func TestDecideClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		claim *hostsv1alpha1.HostClaim
		hosts []*hostsv1alpha1.Host
		want  claimAction
		host  string
	}{
		"no host":                                {claim: claim(), want: claimNone},
		"the first host that fits is reserved":   {claim: claim(), hosts: []*hostsv1alpha1.Host{host("c"), host("a"), host("b")}, want: claimReserve, host: "a"},
		"a host of another type does not fit":    {claim: claim(), hosts: []*hostsv1alpha1.Host{host("a", func(h *hostsv1alpha1.Host) { h.Spec.MachineType = "large" })}, want: claimNone},
		"a host of another zone does not fit":    {claim: claim(func(c *hostsv1alpha1.HostClaim) { c.Spec.Zone = "b" }), hosts: []*hostsv1alpha1.Host{host("a")}, want: claimNone},
		"a host without the labels does not fit": {claim: claim(selecting), hosts: []*hostsv1alpha1.Host{host("a")}, want: claimNone},
		"a host with the labels fits":            {claim: claim(selecting), hosts: []*hostsv1alpha1.Host{host("a"), host("b", labelled)}, want: claimReserve, host: "b"},
		"a host for other shoots does not fit":   {claim: claim(), hosts: []*hostsv1alpha1.Host{host("a", only("shoot--dev--*", "["))}, want: claimNone},
		"a host for these shoots fits":           {claim: claim(), hosts: []*hostsv1alpha1.Host{host("a", only("other", "n*"))}, want: claimReserve, host: "a"},
		"others are not handed out": {claim: claim(), hosts: []*hostsv1alpha1.Host{
			host("a", in("")), host("b", in(hostsv1alpha1.HostFailed)), host("c", in(hostsv1alpha1.HostCleaning)), host("d", machineOf("2", true)), host("e", deleted),
			host("f", func(h *hostsv1alpha1.Host) { h.Spec.Unschedulable = true }), host("g", func(h *hostsv1alpha1.Host) { h.Finalizers = nil }),
			host("h", machineOf("2", true), in(hostsv1alpha1.HostAvailable)), host("i", changed), host("j", neverReached),
		}, want: claimNone},
		"a reserved host is bound":                                   {claim: claim(reserves("b")), hosts: []*hostsv1alpha1.Host{host("a"), host("b")}, want: claimBind, host: "b"},
		"a reserved host that another claim has":                     {claim: claim(reserves("b")), hosts: []*hostsv1alpha1.Host{host("a"), host("b", machineOf("2", false))}, want: claimCancel},
		"a reserved host that has to be checked again":               {claim: claim(reserves("b")), hosts: []*hostsv1alpha1.Host{host("a"), host("b", changed)}, want: claimCancel},
		"a reserved host that is removed":                            {claim: claim(reserves("b")), hosts: []*hostsv1alpha1.Host{host("a")}, want: claimCancel},
		"a reserved host that does not fit anymore":                  {claim: claim(reserves("b"), selecting), hosts: []*hostsv1alpha1.Host{host("b")}, want: claimCancel},
		"a bound host is reported":                                   {claim: claim(reserves("b")), hosts: []*hostsv1alpha1.Host{host("a"), host("b", machineOf("1", false))}, want: claimBound, host: "b"},
		"a bound host is the machine's, whatever the claim names":    {claim: claim(), hosts: []*hostsv1alpha1.Host{host("a"), host("b", machineOf("1", false))}, want: claimBound, host: "b"},
		"a machine whose host is removed is lost, and gets no other": {claim: claim(reserves("b"), bound), hosts: []*hostsv1alpha1.Host{host("a")}, want: claimLost},
		"a claim ends when its host is released":                     {claim: claim(reserves("b"), bound, ends), hosts: []*hostsv1alpha1.Host{host("b")}, want: claimFinish},
		"and not before":                                             {claim: claim(reserves("b"), bound, ends), hosts: []*hostsv1alpha1.Host{host("b", machineOf("1", true), in(hostsv1alpha1.HostCleaning))}, want: claimWait, host: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []hostsv1alpha1.Host
			for _, h := range tc.hosts {
				all = append(all, *h)
			}
			action, chosen := decideClaim(tc.claim, all)
			got := ""
			if chosen != nil {
				got = chosen.Name
			}
			if action != tc.want || got != tc.host {
				t.Errorf("decideClaim() = %s %q, want %s %q", action, got, tc.want, tc.host)
			}
		})
	}
}

func only(namespaces ...string) func(*hostsv1alpha1.Host) {
	return func(h *hostsv1alpha1.Host) { h.Spec.Namespaces = namespaces }
}

func selecting(c *hostsv1alpha1.HostClaim) { c.Spec.HostSelector = map[string]string{"disk": "ssd"} }
func labelled(h *hostsv1alpha1.Host)       { h.Labels = map[string]string{"disk": "ssd"} }

func TestDecideHost(t *testing.T) {
	cleanAgain := func(h *hostsv1alpha1.Host) {
		h.Annotations = map[string]string{constants.GardenerOperation: hostsv1alpha1.OperationClean}
	}
	without := func(h *hostsv1alpha1.Host) { h.Finalizers = nil }
	for name, tc := range map[string]struct {
		host  *hostsv1alpha1.Host
		claim *hostsv1alpha1.HostClaim
		want  hostAction
	}{
		"a new one gets the finalizer":             {host: host("a", in(""), without), want: hostKeep},
		"a new one is checked":                     {host: host("a", in("")), want: hostCheck},
		"an available one is left":                 {host: host("a"), want: hostNothing},
		"an available one, in use by nobody":       {host: host("a", cleanAgain), want: hostNothing},
		"an available one that has changed":        {host: host("a", changed), want: hostCheck},
		"an available one without a condition":     {host: host("a", neverReached), want: hostCheck},
		"a changed one that is deleted":            {host: host("a", changed, deleted), want: hostForget},
		"a machine that has changed":               {host: host("a", changed, machineOf("1", true)), claim: claim(), want: hostNothing},
		"one that is deleted is forgotten":         {host: host("a", deleted), want: hostForget},
		"one that is forgotten":                    {host: host("a", deleted, without), want: hostNothing},
		"one in use is not forgotten":              {host: host("a", machineOf("1", true), deleted), claim: claim(), want: hostNothing},
		"a claimed one gets the user data":         {host: host("a", machineOf("1", false)), claim: claim(), want: hostProvision},
		"a machine":                                {host: host("a", machineOf("1", true)), claim: claim(), want: hostNothing},
		"one whose claim is deleted":               {host: host("a", machineOf("1", true)), claim: claim(ends), want: hostRelease},
		"one whose claim is deleted before it ran": {host: host("a", machineOf("1", false)), claim: claim(ends), want: hostRelease},
		"one whose claim has vanished":             {host: host("a", machineOf("1", true)), want: hostRelease},
		"one whose claim is another of that name":  {host: host("a", machineOf("2", true)), claim: claim(), want: hostRelease},
		"one that is released is cleaned":          {host: host("a", machineOf("1", true), in(hostsv1alpha1.HostCleaning)), claim: claim(ends), want: hostClean},
		"also if it is deleted":                    {host: host("a", in(hostsv1alpha1.HostCleaning), deleted), want: hostClean},
		"a failed one is left":                     {host: host("a", in(hostsv1alpha1.HostFailed)), want: hostNothing},
		"one that was given up is cleaned":         {host: host("a", in(hostsv1alpha1.HostFailed), unreachable), want: hostClean},
		"one that was given up, on request":        {host: host("a", in(hostsv1alpha1.HostFailed), unreachable, cleanAgain), want: hostRelease},
		"one that was given up is forgotten":       {host: host("a", in(hostsv1alpha1.HostFailed), unreachable, deleted), want: hostForget},
		"a failed one is cleaned again on request": {host: host("a", in(hostsv1alpha1.HostFailed), cleanAgain), want: hostRelease},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decideHost(tc.host, tc.claim); got != tc.want {
				t.Errorf("decideHost() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestShortage(t *testing.T) {
	hosts := []hostsv1alpha1.Host{
		*host("a", machineOf("2", true), labelled), *host("b", in(hostsv1alpha1.HostFailed), labelled), *host("c", labelled, deleted), *host("d", in(""), labelled), *host("e"),
	}
	c := claim(selecting)
	c.Spec.Zone = "a"
	const want = "no host is available of 4 with machine type small, zone a, labels disk=ssd (1 claimed, 1 failed, 1 pending, 1 not to be used)"
	if got := shortage(hosts, c); got != want {
		t.Errorf("shortage() = %q, want %q", got, want)
	}
}

func TestParse(t *testing.T) {
	h := host("a")
	problems := parse(h, "hostname=a\ncpu=8\nmemory=16310012Ki\n")
	if len(problems) > 0 || h.Status.Capacity.Cpu().Value() != 8 || h.Status.Capacity.Memory().Value() != 16310012<<10 {
		t.Errorf("problems %v, capacity %v", problems, h.Status.Capacity)
	}
	// It ends at once, and does not panic.
	for _, capacity := range []string{"cpu=1e-999999999", "cpu=1E9", "memory=-1Ki", "cpu=", "memory=99999999999999999999"} {
		if problems := parse(h, "hostname=a\n"+capacity+"\n"); len(problems) != 1 {
			t.Errorf("%s: problems %q", capacity, problems)
		}
	}
	if problems := parse(h, "hostname=b\nproblem=kubelet.service is active\n"); len(problems) != 3 {
		t.Errorf("problems %q", problems)
	}
}

func TestGivesUp(t *testing.T) {
	h := host("a")
	setPhase(&h.Status, hostsv1alpha1.HostCleaning, "", time.Unix(1000, 0))
	for after, want := range map[time.Duration]bool{time.Minute: false, cleanTimeout + time.Second: true} {
		if got := givesUp(h, time.Unix(1000, 0).Add(after)); got != want {
			t.Errorf("givesUp() after %s = %v", after, got)
		}
	}
}
