package stale

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// verdict is what becomes of a Project.
type verdict struct {
	// since is when it was first found to be stale; nil if it is not.
	since *metav1.Time
	// autoDelete is when it will be deleted; nil if that has no date yet.
	autoDelete *metav1.Time
	// remove says that the time has come.
	remove bool
	// recheckIn is when time alone may change the verdict, or when the use of the Project is checked again.
	recheckIn time.Duration
}

// decide returns what becomes of a Project, which something in its namespace uses or not.
func decide(project *corev1beta1.Project, used bool, now time.Time, v Values) verdict {
	next := func(at time.Time) time.Duration { return min(v.SyncPeriod, at.Sub(now)) }
	if used {
		return verdict{recheckIn: v.SyncPeriod}
	}
	last := project.CreationTimestamp.Time
	if activity := project.Status.LastActivityTimestamp; activity != nil && activity.After(last) {
		last = activity.Time
	}
	if end := last.Add(v.MinimumLifetime); now.Before(end) {
		return verdict{recheckIn: next(end)}
	}
	since := project.Status.StaleSinceTimestamp
	if since == nil {
		since = new(metav1.NewTime(now).Rfc3339Copy())
	}
	if end := since.Add(v.GracePeriod); now.Before(end) {
		return verdict{since: since, recheckIn: next(end)}
	}
	autoDelete := new(metav1.NewTime(since.Add(v.Expiration)))
	announced := project.Status.StaleAutoDeleteTimestamp
	if announced != nil && autoDelete.Before(announced) {
		autoDelete = announced // a date that was announced does not come earlier
	}
	if now.Before(autoDelete.Time) {
		return verdict{since: since, autoDelete: autoDelete, recheckIn: next(autoDelete.Time)}
	}
	if announced == nil {
		// The periods allow no warning, or no controller was running. The date is announced at least once before the deletion.
		return verdict{since: since, autoDelete: autoDelete, recheckIn: v.SyncPeriod}
	}
	return verdict{since: since, autoDelete: autoDelete, remove: true, recheckIn: v.SyncPeriod}
}
