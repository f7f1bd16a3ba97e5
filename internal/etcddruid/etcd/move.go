package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

const (
	// reasonMoving is the reason of events and of the condition AllMembersUpdated while a member moves to another zone.
	reasonMoving = "MemberMoving"
	actionMove   = "Move"
	// fewestToMove is the number of members without one of which there is a quorum.
	fewestToMove = 3
)

// move lets a member get a volume in another zone, if its pod cannot run in the zone of its volume: when a cluster is to be spread over zones, all
// volumes are in one. The StatefulSet replaces pods one by one, so there is one such member at a time. It loses its volume, and joins the
// others as a learner; they must all have a vote, as they are the quorum until then.
func (r *reconciler) move(ctx context.Context, s *scope) error {
	if s.statefulSet == nil || !oneMissing(s.statefulSet) {
		return nil
	}
	if len(affinityZones(s.statefulSet.Spec.Template.Spec.Affinity)) == 0 {
		return nil
	}
	pods := &corev1.PodList{}
	if err := r.api.List(ctx, pods, client.InNamespace(s.etcd.Namespace), client.MatchingLabels(podLabels(s.etcd.Name))); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	pod := pending(s.statefulSet, pods.Items)
	if pod == nil {
		return nil
	}
	where := placementOf(s.statefulSet.Spec.Replicas, &pod.Spec)
	volumes, zones, err := r.volumesOf(ctx, s)
	if err != nil {
		return err
	}
	own := volumes[pod.Name]
	if own.claim == nil || !own.deleted() && !(unschedulable(pod) && where.excludes(own.zones, zonesOfOthers(volumes, pod.Name))) {
		return nil
	}
	s.moving = fmt.Sprintf("Member %q moves to another zone: its pod cannot run in that of its volume (%s)", pod.Name, strings.Join(own.zones, ", "))
	if !r.othersVote(s, pods.Items, pod.Name) {
		s.moving += "; waiting until all other members are ready"
		return nil
	}
	if !own.deleted() && !where.hasRoom(zones, zonesOfOthers(volumes, pod.Name)) {
		s.moving += "; waiting for a node in another zone"
		return nil
	}
	return r.replace(ctx, s, pod, own.claim)
}

// maySpread returns why members cannot be spread over zones now. The StatefulSet replaces the last pod first, also while another one is missing: neither of them
// could come back then.
func maySpread(current *appsv1.StatefulSet, desired []client.Object) error {
	if current == nil || ptr.Deref(current.Spec.Replicas, 1) < fewestToMove || current.Status.ReadyReplicas >= *current.Spec.Replicas ||
		spreadOverZones(&current.Spec.Template.Spec) {
		return nil
	}
	for _, object := range desired {
		if set, ok := object.(*appsv1.StatefulSet); ok && spreadOverZones(&set.Spec.Template.Spec) {
			return fmt.Errorf("members are spread over zones when all of them are ready: %d of %d are", current.Status.ReadyReplicas, *current.Spec.Replicas)
		}
	}
	return nil
}

func spreadOverZones(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.TopologySpreadConstraints, requiresZones)
}

// replace deletes a pod with its claim. The StatefulSet creates both again.
func (r *reconciler) replace(ctx context.Context, s *scope, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) error {
	log.FromContext(ctx).Info("Moving member to another zone", "member", pod.Name, "claim", claim.Name, "volume", claim.Spec.VolumeName)
	// A claim is not deleted before its pod is gone if that has a node meanwhile, and a pod does not start with such a claim: so it is deleted in any case,
	// by the next pass if this one fails in between.
	if err := r.client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete PersistentVolumeClaim %q: %w", claim.Name, err)
	}
	if err := r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete pod %q: %w", pod.Name, err)
	}
	r.recorder.Eventf(s.etcd, pod, corev1.EventTypeNormal, reasonMoving, actionMove, "%s", s.moving)
	return nil
}

// oneMissing reports whether all members but one are ready, as the controller of the StatefulSet has observed after its last change.
func oneMissing(set *appsv1.StatefulSet) bool {
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	return replicas >= fewestToMove && set.Status.ObservedGeneration >= set.Generation && set.Status.ReadyReplicas == replicas-1
}

// pending returns the pod that has not started, if it is the only one and has the current template.
func pending(set *appsv1.StatefulSet, pods []corev1.Pod) *corev1.Pod {
	var found *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		switch {
		case pod.Status.Phase != corev1.PodPending:
		case found != nil, pod.DeletionTimestamp != nil, pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision:
			return nil
		default:
			found = pod
		}
	}
	return found
}

func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// othersVote reports whether all members but one have a vote, and their pods are ready.
func (r *reconciler) othersVote(s *scope, pods []corev1.Pod, member string) bool {
	voters, ready := map[string]bool{}, 0
	statuses, _ := memberStatuses(s.etcd, s.etcd.Spec.Replicas, s.leases, r.thresholds, r.clock.Now())
	for _, status := range statuses {
		voters[status.Name] = votes(status)
	}
	for i := range pods {
		isReady := slices.ContainsFunc(pods[i].Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if pods[i].Name != member && isReady && pods[i].DeletionTimestamp == nil && voters[pods[i].Name] {
			ready++
		}
	}
	return ready == int(s.etcd.Spec.Replicas)-1
}

// votes reports whether a member is ready and no learner.
func votes(m druidv1alpha1.EtcdMemberStatus) bool {
	return m.Status == druidv1alpha1.EtcdMemberStatusReady && (m.Role == nil || *m.Role != druidv1alpha1.EtcdRoleLearner)
}

// memberVolume is the volume of a member.
type memberVolume struct {
	claim *corev1.PersistentVolumeClaim // nil if there is none
	// zones are those in which it can be used. It is empty if there is no volume yet, or if no node can use it.
	zones []string
}

// deleted reports whether the claim is being deleted.
func (v memberVolume) deleted() bool { return v.claim.DeletionTimestamp != nil }

// volumesOf reads the volumes of members, by the names of the members, and the zones that have nodes.
func (r *reconciler) volumesOf(ctx context.Context, s *scope) (volumes map[string]memberVolume, zones []string, err error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.api.List(ctx, claims, client.InNamespace(s.etcd.Namespace), client.MatchingLabels(podLabels(s.etcd.Name))); err != nil {
		return nil, nil, fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.api.List(ctx, nodes); err != nil {
		return nil, nil, fmt.Errorf("list Nodes: %w", err)
	}
	for i := range nodes.Items {
		zones = append(zones, nodes.Items[i].Labels[corev1.LabelTopologyZone])
	}
	out := map[string]memberVolume{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		// The claims of a StatefulSet are named for the template and the pod. Others are of a former template.
		member, ok := strings.CutPrefix(claim.Name, s.statefulSet.Spec.VolumeClaimTemplates[0].Name+"-")
		if !ok {
			continue
		}
		v := memberVolume{claim: claim}
		if claim.Spec.VolumeName != "" {
			volume := &corev1.PersistentVolume{}
			if err := r.api.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); client.IgnoreNotFound(err) != nil {
				return nil, nil, fmt.Errorf("read PersistentVolume %q: %w", claim.Spec.VolumeName, err)
			}
			if volume.UID != "" {
				if v.zones, err = volumeZones(volume, nodes.Items); err != nil {
					return nil, nil, err
				}
			}
		}
		out[member] = v
	}
	return out, zones, nil
}

func zonesOfOthers(volumes map[string]memberVolume, member string) [][]string {
	var out [][]string
	for name, volume := range volumes {
		if name != member {
			out = append(out, volume.zones)
		}
	}
	return out
}
