/** The store and the place of files of this run's tests of batches. */
import { ofToday } from '../../helpers/long-suite.js'
import { PLACES } from './batch-stage.js'

/** Each day one of them, the long suite both. */
export const PLACES_OF_DAY = [...ofToday(PLACES, PLACES.length)]
