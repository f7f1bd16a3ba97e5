// Package worker has what is the same for the Workers of all infrastructures.
package worker
