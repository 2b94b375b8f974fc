/** A form that sends one request at a time and keeps its problem. */
import { useState, type FormEvent } from 'react'
import { problemOf, type Problem } from '../../api/client.js'

/** The state of a form and its `onSubmit` handler. */
export interface Submit {
  readonly busy: boolean
  readonly problem: Problem | null
  readonly submit: (event: FormEvent) => void
}

/** Runs `act` when the form is submitted. */
export function useSubmit(act: () => Promise<void>): Submit {
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const run = async (): Promise<void> => {
    setBusy(true)
    setProblem(null)
    try {
      await act()
    } catch (error) {
      setProblem(problemOf(error))
    } finally {
      setBusy(false)
    }
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    void run()
  }
  return { busy, problem, submit }
}
