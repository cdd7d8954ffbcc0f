package sdk

import "strconv"

// Page is one page of a task set whose n tasks are made from their number: a whole Tasks function for
// procedural sets.
func Page(cursor string, limit, n int, at func(i int) (Task, error)) ([]Task, string, error) {
	i := 0
	if cursor != "" {
		var err error
		if i, err = strconv.Atoi(cursor); err != nil || i < 0 {
			return nil, "", NewError(codeRequest, "tasks: bad cursor "+cursor)
		}
	}
	var tasks []Task
	for ; i < n && len(tasks) < limit; i++ {
		t, err := at(i)
		if err != nil {
			return nil, "", err
		}
		tasks = append(tasks, t)
	}
	if i < n {
		return tasks, strconv.Itoa(i), nil
	}
	return tasks, "", nil
}
