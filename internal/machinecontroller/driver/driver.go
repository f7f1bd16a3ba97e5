// Package driver is the interface of the machine-controller-manager to infrastructures.
package driver

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// Driver creates, finds and deletes machines at an infrastructure. All calls may be repeated at any time, as the caller may have ended before
// it could save the result. Calls end when their context does. Errors are, or wrap, an *Error, whose code determines what the caller does.
type Driver interface {
	// CreateMachine creates the machine. It is only called when GetMachineStatus did not find it. It need not wait until the machine has
	// booted.
	CreateMachine(context.Context, Request) (Status, error)
	// GetMachineStatus finds the machine, by its provider ID or, if it has none yet, by its name. The error has the code NotFound if
	// there is none, or one that has ended for good; the Status may still have the NodeName, so that a Node that has just joined is deleted.
	// It has the code Uninitialized if the machine is to be initialized.
	GetMachineStatus(context.Context, Request) (Status, error)
	// InitializeMachine completes a machine after its creation. It is only called for drivers that return Uninitialized.
	InitializeMachine(context.Context, Request) (Status, error)
	// DeleteMachine deletes the machine and everything that was created for it. It returns no error when nothing is left of it. An error
	// with the code DeadlineExceeded means that the deletion is in progress: the call is repeated soon.
	DeleteMachine(context.Context, Request) error
	// ListMachines lists the names of the machines of a class, by provider ID, so that machines without a Machine
	// are found.
	ListMachines(context.Context, ClassRequest) (map[string]string, error)
}

// Notifier is implemented by drivers that are notified by the infrastructure when a machine changes. Their GetMachineStatus is cheap: it is
// also called for healthy machines, so that a lost one is replaced before its Node stops being Ready.
type Notifier interface {
	// Changes is a source of events about machines. The objects have the namespace and the name of the Machine.
	Changes(handler.EventHandler) source.Source
}

// ClassRequest has a class of machines, with its credentials.
type ClassRequest struct {
	// Class is the class.
	Class *machinev1alpha1.MachineClass
	// Credentials are the data of the Secret that the class refers to. They may be nil.
	Credentials map[string][]byte
}

// Request has a machine, and what it is created from.
type Request struct {
	ClassRequest
	// Machine is the machine. Do not change it.
	Machine *machinev1alpha1.Machine
	// UserData is executed by the machine at its first boot. It is only set for CreateMachine and InitializeMachine.
	UserData []byte
}

// Status is the state of a machine at the infrastructure.
type Status struct {
	// ProviderID is the ID of the machine at the infrastructure.
	ProviderID string
	// NodeName is the name that the machine's Node will have.
	NodeName string
	// Addresses are its addresses, if they are known.
	Addresses []corev1.NodeAddress
}

// Code is the kind of an error, for lastOperation.errorCode. The names are those of gRPC.
type Code string

// Codes, and what the caller does about them. All but NotFound are retried, less often if only a change of the class helps.
const (
	// Canceled calls ended with their context.
	Canceled Code = "Canceled"
	// Unknown errors have no code.
	Unknown Code = "Unknown"
	// InvalidArgument means that the class or the machine is invalid. Only a change of it helps.
	InvalidArgument Code = "InvalidArgument"
	// DeadlineExceeded means that the operation is in progress, or took too long. It is retried soon.
	DeadlineExceeded Code = "DeadlineExceeded"
	// NotFound means that there is no such machine.
	NotFound Code = "NotFound"
	// AlreadyExists means that there is another object of this name.
	AlreadyExists Code = "AlreadyExists"
	// PermissionDenied means that the credentials do not permit it. Only a change of them helps.
	PermissionDenied Code = "PermissionDenied"
	// ResourceExhausted means that a quota is used up, or that no such machine is available now. The cluster-autoscaler scales another pool
	// instead.
	ResourceExhausted Code = "ResourceExhausted"
	// FailedPrecondition means that something else is missing or has to happen first.
	FailedPrecondition Code = "FailedPrecondition"
	// Aborted means that there was a conflict with another operation.
	Aborted Code = "Aborted"
	// Unimplemented means that the driver does not support the call.
	Unimplemented Code = "Unimplemented"
	// Internal errors are all others of the infrastructure.
	Internal Code = "Internal"
	// Unavailable means that the infrastructure does not respond. The call is retried soon.
	Unavailable Code = "Unavailable"
	// Unauthenticated means that the credentials are invalid. Only a change of them helps.
	Unauthenticated Code = "Unauthenticated"
	// Uninitialized means that the machine exists, and InitializeMachine is to be called for it.
	Uninitialized Code = "Uninitialized"
)

// Error is an error of a driver. Users read its text, so it must not have credentials.
type Error struct {
	Code Code
	Err  error
}

// Errorf returns an error with a code. The rest is as for fmt.Errorf.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of an error, and an empty one for none.
func CodeOf(err error) Code {
	var coded *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &coded):
		return coded.Code
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Canceled
	default:
		return Unknown
	}
}

// NeedsEdit reports whether an error lasts until a user changes the class or its credentials.
func (c Code) NeedsEdit() bool {
	return c == InvalidArgument || c == PermissionDenied || c == Unauthenticated || c == Unimplemented
}
