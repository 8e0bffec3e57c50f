package org.example.choir

import cats.effect.IO
import org.example.notes.{Note, Pitch => Tone}
import scala.concurrent._

/** Someone who sings. */
@Documented
sealed abstract class Singer[F[_]](val name: String) extends Person(name) with Named with stage.Seated {
  type Score
  val MaxNotes = 40
  private var breath: Int = 3
  lazy val range: List[Tone] = Tone.all(breath)

  /** Sings one note. */
  def sing(note: Note)(implicit hall: Hall[F]): F[Unit] = {
    val loud = note.volume max 3
    def echo(times: Int): Unit = hall.repeat[Note](note, times)
    echo(loud)
    hall.done()
  }

  def rest: F[Unit]
}

case class Choir(singers: List[Singer[IO]]) extends Group

object Choir extends Factory[Choir] {
  val empty: Choir = Choir(Nil)

  def apply(names: String*): Choir = {
    new Choir(names.toList.map(name => new Alto(name)))
  }

  implicit val order: Ordering[Choir] = new Ordering[Choir] {
    def compare(a: Choir, b: Choir): Int = a.singers.size - b.singers.size
  }
}

trait Conductor {
  self: Named =>
  def lead(choir: Choir): IO[Unit]
}

enum Voice(val low: Int) extends Ranked {
  case Alto extends Voice(53)
  case Tenor, Bass
}

given byName: Ordering[Voice] = Ordering.by(_.toString)

extension (choir: Choir) def size: Int = choir.singers.length

opaque type Beat = Int

val tempo = 96
