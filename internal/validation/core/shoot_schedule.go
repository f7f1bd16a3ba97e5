package core

import (
	"regexp"
	"time"

	"github.com/robfig/cron/v3"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/maintenance"
)

const (
	// The maintenance time window must be long enough for the operations, and must leave a part of the day without maintenance.
	minMaintenanceWindow = 30 * time.Minute
	maxMaintenanceWindow = 6 * time.Hour
	// Credentials are rotated not before the last rotation has finished, and not later than auditors accept.
	minRotationPeriod = 30 * time.Minute
	maxRotationPeriod = 90 * 24 * time.Hour
	// maxSchedules is how many hibernation schedules a shoot may have: the controller reads a time zone for each, and looks for its triggers, up to each second.
	maxSchedules = 100
)

var emailAddress = regexp.MustCompile(`^[^@\s]+@[^@\s]+\.[^@\s]+$`)

func shootMaintenance(maintenance *corev1beta1.Maintenance, path *field.Path) field.ErrorList {
	if maintenance == nil {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	var errs field.ErrorList
	if maintenance.AutoUpdate == nil {
		errs = append(errs, field.Required(path.Child("autoUpdate"), "must be set"))
	}
	if maintenance.TimeWindow == nil {
		errs = append(errs, field.Required(path.Child("timeWindow"), "must be set"))
	} else {
		errs = append(errs, maintenanceWindow(maintenance.TimeWindow, path.Child("timeWindow"))...)
	}
	if rotation := maintenance.AutoRotation; rotation != nil && rotation.Credentials != nil {
		path := path.Child("autoRotation", "credentials")
		for _, r := range []struct {
			name   string
			config *corev1beta1.MaintenanceRotationConfig
		}{
			{"observability", rotation.Credentials.Observability},
			{"sshKeypair", rotation.Credentials.SSHKeypair},
			{"etcdEncryptionKey", rotation.Credentials.ETCDEncryptionKey},
		} {
			if r.config == nil || r.config.RotationPeriod == nil || r.config.RotationPeriod.Duration == 0 {
				continue
			}
			if period := r.config.RotationPeriod.Duration; period < minRotationPeriod || period > maxRotationPeriod {
				errs = append(errs, field.Invalid(path.Child(r.name, "rotationPeriod"), period.String(), "must be 0, or between 30 minutes and 90 days"))
			}
		}
	}
	return errs
}

func maintenanceWindow(window *corev1beta1.MaintenanceTimeWindow, path *field.Path) field.ErrorList {
	begin, beginErr := time.Parse(maintenance.Layout, window.Begin)
	end, endErr := time.Parse(maintenance.Layout, window.End)
	if beginErr != nil || endErr != nil {
		return field.ErrorList{field.Invalid(path.Child("begin/end"), window.Begin+"-"+window.End, "must look like 220000+0100")}
	}
	day := 24 * time.Hour
	duration := (end.Sub(begin)%day + day) % day
	if duration < minMaintenanceWindow || duration > maxMaintenanceWindow {
		return field.ErrorList{field.Invalid(path, duration.String(), "must take at least 30 minutes and at most 6 hours")}
	}
	return nil
}

func hibernation(hibernation *corev1beta1.Hibernation, path *field.Path) field.ErrorList {
	if hibernation == nil {
		return nil
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	check := func(expression *string, path *field.Path) {
		if expression == nil {
			return
		}
		if _, err := cron.ParseStandard(*expression); err != nil {
			errs = append(errs, field.Invalid(path, *expression, "must be a cron expression: "+err.Error()))
		} else if seen.Has(*expression) {
			errs = append(errs, field.Duplicate(path, *expression))
		}
		seen.Insert(*expression)
	}
	for i, schedule := range hibernation.Schedules {
		path := path.Child("schedules").Index(i)
		if schedule.Start == nil && schedule.End == nil {
			errs = append(errs, field.Required(path.Child("start/end"), "one of them must be set"))
		}
		check(schedule.Start, path.Child("start"))
		check(schedule.End, path.Child("end"))
		if schedule.Location != nil {
			if _, err := time.LoadLocation(*schedule.Location); err != nil {
				errs = append(errs, field.Invalid(path.Child("location"), *schedule.Location, "must be a time zone like Europe/Berlin"))
			}
		}
	}
	return errs
}

// schedulesAdded refuses more hibernation schedules than maxSchedules, unless there were as many before: the controller changes only whether it is hibernated.
func schedulesAdded(now, before *corev1beta1.Hibernation, path *field.Path) field.ErrorList {
	count := func(h *corev1beta1.Hibernation) int {
		if h == nil {
			return 0
		}
		return len(h.Schedules)
	}
	if n := count(now); n > max(maxSchedules, count(before)) {
		return field.ErrorList{field.TooMany(path, n, maxSchedules)}
	}
	return nil
}

// credentialsInProject checks a reference to credentials in the namespace of the shoot.
func credentialsInProject(ref autoscalingv1.CrossVersionObjectReference, path *field.Path) field.ErrorList {
	errs := crossVersionReference(ref, credentialKinds, path)
	for _, msg := range apivalidation.NameIsDNSSubdomain(ref.Name, false) {
		errs = append(errs, field.Invalid(path.Child("name"), ref.Name, msg))
	}
	return errs
}
