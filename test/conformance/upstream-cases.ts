/**
 * One row per upstream dialect: models and features for the tests of the vendors' clients. A new upstream
 * dialect is one more row; no test names a model.
 */
import type { DialectName } from '../../src/formats/dialect.js'

/** Models and features of one upstream dialect. */
export interface Row {
  readonly dialect: DialectName
  /** A model without reasoning, with tools, images, schemas and sampling. */
  readonly model: string
  /** A model that reasons, also with tools. */
  readonly reasoner: string
  /** The provider shows the reasoning, not only its tokens. */
  readonly showsThinking: boolean
  /** The format has `parallel_tool_calls: false` or an equivalent. */
  readonly oneCallAtATime: boolean
  /** The format has stop sequences. */
  readonly stops: boolean
  /** The smallest reply limit, in tokens. */
  readonly leastTokens: number
}

/** Every upstream dialect. */
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
    // The test gateway always uses Responses for it.
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
