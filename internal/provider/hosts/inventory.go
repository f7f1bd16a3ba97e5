package hosts

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

// claimAction is what is to be done for a HostClaim. One at a time is written, so that a crash in between is seen by the next pass.
type claimAction string

const (
	claimWait    claimAction = "wait"    // until the host is released
	claimFinish  claimAction = "finish"  // remove the finalizer
	claimNone    claimAction = "none"    // no host is available
	claimReserve claimAction = "reserve" // write the name of the host into the claim
	claimCancel  claimAction = "cancel"  // remove it again: another claim has got the host
	claimBind    claimAction = "bind"    // write the claim into the host
	claimBound   claimAction = "bound"   // report the host
	claimLost    claimAction = "lost"    // report that the host is not its machine any more
)

// decideClaim returns what is to be done for a claim, and with which host. A claim first reserves a host and then binds it: each write fails if its object has
// changed since it was read, so that a claim never has two hosts, nor a host two claims.
func decideClaim(claim *hostsv1alpha1.HostClaim, hosts []hostsv1alpha1.Host) (claimAction, *hostsv1alpha1.Host) {
	own := find(hosts, func(h *hostsv1alpha1.Host) bool { return isOf(h, claim.UID) })
	if claim.DeletionTimestamp != nil {
		if own != nil {
			return claimWait, own
		}
		return claimFinish, nil
	}
	switch {
	case own != nil:
		return claimBound, own
	case claim.Status.Bound:
		return claimLost, nil
	case claim.Status.HostName == "":
		if candidate := choose(hosts, claim); candidate != nil {
			return claimReserve, candidate
		}
		return claimNone, nil
	}
	reserved := find(hosts, func(h *hostsv1alpha1.Host) bool { return h.Name == claim.Status.HostName })
	if reserved == nil || !available(reserved) || !fits(reserved, claim) {
		return claimCancel, nil
	}
	return claimBind, reserved
}

// isOf reports whether a host is the machine of a claim.
func isOf(host *hostsv1alpha1.Host, claim types.UID) bool {
	return host.Status.Claim != nil && host.Status.Claim.UID == claim
}

// available reports whether a host may be handed out. The finalizer is there first, as it keeps a host that is in use.
func available(host *hostsv1alpha1.Host) bool {
	return host.Status.Phase == hostsv1alpha1.HostAvailable && checked(host) && host.Status.Claim == nil && !host.Spec.Unschedulable &&
		host.DeletionTimestamp == nil && controllerutil.ContainsFinalizer(host, hostsv1alpha1.HostFinalizer)
}

// checked reports whether the last connection was made with the spec that the host has now. With another one, it may be another server, or this one installed
// again.
func checked(host *hostsv1alpha1.Host) bool {
	reachable := meta.FindStatusCondition(host.Status.Conditions, hostsv1alpha1.ConditionReachable)
	return reachable != nil && reachable.ObservedGeneration == host.Generation
}

// fits reports whether a host is what a machine is to be, and may become one of its shoot. A pattern that is not valid matches no namespace.
func fits(host *hostsv1alpha1.Host, claim *hostsv1alpha1.HostClaim) bool {
	return host.Spec.MachineType == claim.Spec.MachineType && (claim.Spec.Zone == "" || host.Spec.Zone == claim.Spec.Zone) &&
		labels.SelectorFromSet(claim.Spec.HostSelector).Matches(labels.Set(host.Labels)) &&
		(len(host.Spec.Namespaces) == 0 || slices.ContainsFunc(host.Spec.Namespaces, func(pattern string) bool {
			matches, _ := path.Match(pattern, claim.Namespace)
			return matches
		}))
}

// choose returns the host for a new machine: the first one by name that is available, or nil.
func choose(hosts []hostsv1alpha1.Host, claim *hostsv1alpha1.HostClaim) *hostsv1alpha1.Host {
	var chosen *hostsv1alpha1.Host
	for i := range hosts {
		if h := &hosts[i]; available(h) && fits(h, claim) && (chosen == nil || h.Name < chosen.Name) {
			chosen = h
		}
	}
	return chosen
}

func find(hosts []hostsv1alpha1.Host, is func(*hostsv1alpha1.Host) bool) *hostsv1alpha1.Host {
	if i := slices.IndexFunc(hosts, func(h hostsv1alpha1.Host) bool { return is(&h) }); i >= 0 {
		return &hosts[i]
	}
	return nil
}

// shortage says why there is no host for a machine. The shoot owner reads it: it names no host, and no other shoot.
func shortage(hosts []hostsv1alpha1.Host, claim *hostsv1alpha1.HostClaim) string {
	spec := &claim.Spec
	count := map[hostsv1alpha1.HostPhase]int{}
	total := 0
	for i := range hosts {
		if fits(&hosts[i], claim) {
			total++
			count[phaseOf(&hosts[i])]++
		}
	}
	what := []string{"machine type " + spec.MachineType}
	if spec.Zone != "" {
		what = append(what, "zone "+spec.Zone)
	}
	if len(spec.HostSelector) > 0 {
		what = append(what, "labels "+labels.FormatLabels(spec.HostSelector))
	}
	var phases []string
	for _, phase := range []hostsv1alpha1.HostPhase{hostsv1alpha1.HostClaimed, hostsv1alpha1.HostCleaning, hostsv1alpha1.HostFailed, hostsv1alpha1.HostPending} {
		if count[phase] > 0 {
			phases = append(phases, fmt.Sprintf("%d %s", count[phase], strings.ToLower(string(phase))))
		}
	}
	return fmt.Sprintf("no host is available of %d with %s (%s)", total, strings.Join(what, ", "), strings.Join(append(phases, fmt.Sprintf("%d not to be used",
		count[hostsv1alpha1.HostAvailable])), ", "))
}

func phaseOf(host *hostsv1alpha1.Host) hostsv1alpha1.HostPhase {
	if host.Status.Phase == "" {
		return hostsv1alpha1.HostPending
	}
	return host.Status.Phase
}

// hostAction is what is to be done for a Host.
type hostAction string

const (
	hostNothing   hostAction = "nothing"
	hostKeep      hostAction = "keep"      // add the finalizer
	hostForget    hostAction = "forget"    // remove it
	hostCheck     hostAction = "check"     // whether it can be a machine
	hostProvision hostAction = "provision" // give it the user data
	hostRelease   hostAction = "release"   // begin to clean it
	hostClean     hostAction = "clean"
)

// decideHost returns what is to be done for a host. The claim is the one in its status, or nil if there is none any more.
func decideHost(host *hostsv1alpha1.Host, claim *hostsv1alpha1.HostClaim) hostAction {
	phase := phaseOf(host)
	inUse := phase == hostsv1alpha1.HostClaimed || phase == hostsv1alpha1.HostCleaning
	switch has := controllerutil.ContainsFinalizer(host, hostsv1alpha1.HostFinalizer); {
	case host.DeletionTimestamp != nil && !inUse && has:
		return hostForget
	case host.DeletionTimestamp != nil && !inUse:
		return hostNothing
	case !has && host.DeletionTimestamp == nil:
		return hostKeep
	}
	switch {
	case phase == hostsv1alpha1.HostPending, phase == hostsv1alpha1.HostAvailable && !checked(host):
		return hostCheck
	case phase == hostsv1alpha1.HostClaimed && (claim == nil || claim.DeletionTimestamp != nil || !isOf(host, claim.UID)):
		return hostRelease
	case phase == hostsv1alpha1.HostClaimed && !host.Status.Claim.Provisioned:
		return hostProvision
	case phase == hostsv1alpha1.HostCleaning:
		return hostClean
	case phase == hostsv1alpha1.HostFailed && host.Annotations[constants.GardenerOperation] == hostsv1alpha1.OperationClean:
		return hostRelease
	case gaveUp(host):
		return hostClean
	}
	return hostNothing
}

// cleanTimeout is how long a host may be unreachable while it is cleaned. It may be rebooting; afterwards its machine should not keep a shoot from being
// deleted, and it is cleaned when it comes back.
const cleanTimeout = 10 * time.Minute

// givesUp reports whether a host that cannot be reached fails, so that its claim ends.
func givesUp(host *hostsv1alpha1.Host, now time.Time) bool {
	return host.Status.PhaseSince != nil && now.Sub(host.Status.PhaseSince.Time) > cleanTimeout
}

// gaveUp reports whether a host failed as it could not be reached while it was cleaned. When it comes back, it is still the machine that it was, and would join
// its former shoot.
func gaveUp(host *hostsv1alpha1.Host) bool {
	return host.Status.Phase == hostsv1alpha1.HostFailed && meta.IsStatusConditionFalse(host.Status.Conditions, hostsv1alpha1.ConditionReachable)
}

// setPhase changes the phase. A host that is neither claimed nor being cleaned is no machine.
func setPhase(status *hostsv1alpha1.HostStatus, phase hostsv1alpha1.HostPhase, message string, now time.Time) {
	status.Phase, status.Message, status.PhaseSince = phase, message, &metav1.Time{Time: now}
	if phase != hostsv1alpha1.HostClaimed && phase != hostsv1alpha1.HostCleaning {
		status.Claim = nil
	}
}
