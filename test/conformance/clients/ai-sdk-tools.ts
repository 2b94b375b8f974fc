/** Tools of Vercel's `ai` for the tests of its providers. */
import { tool, type ToolSet } from 'ai'
import * as z from 'zod'

/** Tools that record their arguments in `calls`. */
export function recordingTools(calls: string[]) {
  return {
    get_time: tool({
      description: 'The time',
      inputSchema: z.object({}),
      execute: () => {
        calls.push('get_time')
        return 'noon'
      },
    }),
    get_weather: tool({
      description: 'The weather of a city',
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => {
        calls.push(`get_weather ${city}`)
        return { sky: 'snow', city }
      },
    }),
  } satisfies ToolSet
}
