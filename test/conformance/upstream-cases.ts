/**
 * One row per upstream dialect: what the tests of the vendors' clients ask for and may expect there.
 * A new upstream dialect is one more row; no test names a model.
 */
import type { DialectName } from '../../src/dialects/dialect.js'

/** What a client meets behind one upstream dialect. */
export interface Row {
  readonly dialect: DialectName
  /** Answers plainly, takes tools, images, schemas and sampling. */
  readonly model: string
  /** Reasons before it answers, also with tools. */
  readonly reasoner: string
  /** The provider shows what the reasoner thought, not only how many tokens it took. */
  readonly showsThinking: boolean
  /** `parallel_tool_calls: false` can be said to the provider. */
  readonly oneCallAtATime: boolean
  /** The format has stop sequences. */
  readonly stops: boolean
  /** The least that an answer may be limited to, in tokens. */
  readonly leastTokens: number
}

/** Every upstream dialect that a client may be routed to. */
export const ROWS: readonly Row[] = [
  {
    dialect: 'openai-chat',
    model: 'gpt-4o',
    reasoner: 'gpt-5.4',
    showsThinking: false,
    oneCallAtATime: true,
    stops: true,
    leastTokens: 3,
  },
  {
    dialect: 'openai-responses',
    // The test gateway asks it over Responses whatever it could do elsewhere.
    model: 'gpt-4.1',
    reasoner: 'gpt-5-pro',
    showsThinking: false,
    oneCallAtATime: true,
    stops: false,
    leastTokens: 16,
  },
  {
    dialect: 'anthropic',
    model: 'claude-haiku-4-5',
    reasoner: 'claude-opus-4-8',
    showsThinking: true,
    oneCallAtATime: true,
    stops: true,
    leastTokens: 3,
  },
  {
    dialect: 'gemini',
    model: 'gemini-2.5-flash',
    reasoner: 'gemini-3.5-flash',
    showsThinking: true,
    oneCallAtATime: false,
    stops: true,
    leastTokens: 3,
  },
]
