// SPDX-License-Identifier: BSD-3-Clause
// A program that makes its system calls itself: store read|append|write|truncate|stat FILE, or copy (standard
// input to standard output).
package main

import (
	"fmt"
	"io"
	"os"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(name string, flags int) {
	f, err := os.OpenFile(name, flags, 0644)
	fail(err)
	_, err = f.WriteString("by the stranger\n")
	fail(err)
	fail(f.Close())
}

func main() {
	switch os.Args[1] {
	case "copy":
		_, err := io.Copy(os.Stdout, os.Stdin)
		fail(err)
	case "say":
		_, err := fmt.Println(os.Args[2])
		fail(err)
	case "read":
		data, err := os.ReadFile(os.Args[2])
		fail(err)
		os.Stdout.Write(data)
	case "append":
		write(os.Args[2], os.O_WRONLY|os.O_APPEND)
	case "write":
		write(os.Args[2], os.O_WRONLY)
	case "create":
		write(os.Args[2], os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	case "truncate":
		fail(os.Truncate(os.Args[2], 0))
	case "unlink":
		fail(os.Remove(os.Args[2]))
	case "stat":
		st, err := os.Stat(os.Args[2])
		fail(err)
		fmt.Println(st.Size(), st.Mode())
	}
}
