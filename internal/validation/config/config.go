// Package config validates component configurations, after they got their defaults.
//
// All functions are pure and return every error at once, each with the path that the user typed. Feature gates are not checked: the
// process that has them knows their names.
package config

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

func required(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	return nil
}

func supported[T ~string](value T, path *field.Path, values ...T) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}

// logging checks the level and the format of the log.
func logging(level, format string) field.ErrorList {
	errs := supported(level, field.NewPath("logLevel"), "info", "debug", "error")
	return append(errs, supported(format, field.NewPath("logFormat"), "json", "text")...)
}

// port checks the port that a server listens at.
func port(value int, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsValidPortNum(value) {
		errs = append(errs, field.Invalid(path.Child("port"), value, message))
	}
	return errs
}

// client checks the limits of a client.
func client(config *componentbaseconfigv1alpha1.ClientConnectionConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	// A rate below zero switches the limit off, as client-go has it.
	if config.Burst < 0 {
		errs = append(errs, field.Invalid(path.Child("burst"), config.Burst, "must not be negative"))
	}
	return errs
}

// leaderElection checks the times of a leader election, and the name of its Lease.
func leaderElection(config *componentbaseconfigv1alpha1.LeaderElectionConfiguration) field.ErrorList {
	if config == nil || config.LeaderElect != nil && !*config.LeaderElect {
		return nil
	}
	path := field.NewPath("leaderElection")
	var errs field.ErrorList
	errs = append(errs, positive(&config.LeaseDuration, path.Child("leaseDuration"))...)
	errs = append(errs, positive(&config.RenewDeadline, path.Child("renewDeadline"))...)
	errs = append(errs, positive(&config.RetryPeriod, path.Child("retryPeriod"))...)
	if config.LeaseDuration.Duration <= config.RenewDeadline.Duration {
		errs = append(errs, field.Invalid(path.Child("leaseDuration"), config.LeaseDuration.Duration.String(), "must be longer than renewDeadline"))
	}
	if config.RenewDeadline.Duration <= config.RetryPeriod.Duration {
		errs = append(errs, field.Invalid(path.Child("renewDeadline"), config.RenewDeadline.Duration.String(), "must be longer than retryPeriod"))
	}
	errs = append(errs, supported(config.ResourceLock, path.Child("resourceLock"), "leases")...)
	return append(errs, required(config.ResourceName, path.Child("resourceName"))...)
}

// positive checks a duration that must be above zero. Unset is fine.
func positive(duration *metav1.Duration, path *field.Path) field.ErrorList {
	if duration != nil && duration.Duration <= 0 {
		return field.ErrorList{field.Invalid(path, duration.Duration.String(), "must be above zero")}
	}
	return nil
}

// atLeast checks a duration that must not be too short. Unset is fine.
func atLeast(duration *metav1.Duration, minimum time.Duration, path *field.Path) field.ErrorList {
	if duration != nil && duration.Duration < minimum {
		return field.ErrorList{field.Invalid(path, duration.Duration.String(), "must be at least "+minimum.String())}
	}
	return nil
}

// notNegative checks a number that may be zero. Unset is fine.
func notNegative[T int | int32 | int64](value *T, path *field.Path) field.ErrorList {
	if value != nil && *value < 0 {
		return field.ErrorList{field.Invalid(path, *value, "must not be negative")}
	}
	return nil
}

// selector checks a label selector. Unset is fine.
func selector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

// namedInt is a number with its path, for lists of settings that are checked alike.
type namedInt struct {
	path  *field.Path
	value *int
}

func allNotNegative(numbers ...namedInt) field.ErrorList {
	var errs field.ErrorList
	for _, n := range numbers {
		errs = append(errs, notNegative(n.value, n.path)...)
	}
	return errs
}

// namedDuration is a duration with its path, for lists of settings that are checked alike.
type namedDuration struct {
	path  *field.Path
	value *metav1.Duration
}

func allPositive(durations ...namedDuration) field.ErrorList {
	var errs field.ErrorList
	for _, d := range durations {
		errs = append(errs, positive(d.value, d.path)...)
	}
	return errs
}

// threshold checks how long a condition may be Progressing.
func threshold(conditionType string, duration metav1.Duration, path *field.Path) field.ErrorList {
	errs := required(conditionType, path.Child("type"))
	if duration.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("duration"), duration.Duration.String(), "must not be negative"))
	}
	return errs
}
