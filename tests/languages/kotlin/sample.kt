package org.example.bakery

import kotlinx.coroutines.delay
import org.example.flour.*
import org.example.oven.Heat as OvenHeat

const val MAX_LOAVES = 24
val names: List<String> = listOf("rye", "spelt")

typealias Recipe = Map<String, Int>

/** Bakes what the recipe says. */
@Service("baker")
abstract class Baker<T : Dough>(val name: String, private var tired: Boolean = false) : Worker<T>(name), Named {
    private val oven: Oven by lazy { Oven() }
    var loaves: Int = 0
        get() = field + 1

    init {
        register(this)
    }

    constructor(id: Int) : this("baker $id") {
        oven.light()
    }

    abstract fun knead(dough: T): Loaf

    override suspend fun <R> bake(dough: T, then: (Loaf) -> R): R {
        val loaf = knead(dough)
        delay(100)
        return then(loaf.also { loaves++ })
    }

    companion object {
        const val SHIFT = 8

        fun hire(name: String) = Apprentice(name)
    }

    inner class Peel
}

data class Loaf(val grams: Int)

sealed interface Topping : Edible {
    fun spread(): Boolean
}

enum class Grain(val label: String) {
    RYE("r"),
    OAT("o");

    fun short(): Char = label.first()
}

object Shop : Counter(), Open by Hours {
    fun sell(loaf: Loaf) = till.add(loaf.grams)
}

fun Loaf.slice(count: Int): List<Slice> = List(count) { Slice(this) }

val Loaf.heavy: Boolean
    get() = grams > 900
