/** A form that sends once at a time and keeps why it failed. */
import { useState, type FormEvent } from 'react'
import { problemOf, type Problem } from '../../api/client.js'

/** A form's state and what its `onSubmit` takes. */
export interface Submit {
  readonly busy: boolean
  readonly problem: Problem | null
  readonly submit: (event: FormEvent) => void
}

/** Runs `act` when the form is sent. */
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
